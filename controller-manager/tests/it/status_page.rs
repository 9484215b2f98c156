//! The status page in a browser, if Chromium is installed.

#![cfg(all(feature = "builtin", feature = "sandbox"))]

use std::path::{Path, PathBuf};

use crate::browser::{Browser, installed};
use crate::subcommand::{QUICK, client, start_with_port};
use crate::support::program::Folder;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, PostParams};
use serde_json::json;

/// A namespace and a name with which a page that made markup of strings would run a script.
const MARKUP: &str = "<img src=x onerror=\"document.title='broken'\">";

/// Opens the page of a sandbox whose deployment `web` is explained, and lets `look` at it.
async fn look_at_page(look: impl FnOnce(Browser, &str) + Send + 'static) {
    let Some(chromium) = installed() else {
        use std::io::Write as _;
        let mut out = std::io::stderr();
        drop(writeln!(out, "skipped: Chromium is not installed (Debian's package is chromium)"));
        return;
    };
    let folder = Folder::new();
    folder.file("pods.yaml", QUICK);
    let mut process = start_with_port(&folder, &["--pods=pods.yaml"]);
    let line = process.prints("  status page  ").await;
    let url = line.split_whitespace().last().expect("it ends with the URL").to_owned();
    process.prints("Ctrl-C ends it").await;
    let deployments: Api<Deployment> = Api::default_namespaced(client(&folder).await);
    let web = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "shop:1.0" }] },
            },
        },
    });
    let web: Deployment = serde_json::from_value(web).expect("it is a deployment");
    deployments.create(&PostParams::default(), &web).await.expect("it must be created");
    let browsing = tokio::task::spawn_blocking(move || {
        let profile = Folder::new();
        let browser = Browser::open(&chromium, profile.as_ref(), &format!("{url}#deployments.apps/default/web"));
        look(browser, &url);
    });
    browsing.await.expect("the page must be as expected");
    process.terminate();
    // With a page open the sandbox ends as it should.
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

fn screenshots() -> Option<PathBuf> {
    std::env::var_os("SCREENSHOTS").map(PathBuf::from)
}

#[tokio::test]
async fn it_shows_the_manager_live_and_explains_an_object() {
    look_at_page(|mut page, url| {
        for text in [
            "Nothing needs attention",
            "live",
            "off: this process acts",
            "deployment-controller",
            "creates replica set web-",
            "create replicasets.apps default/web-",
            "pods",
        ] {
            page.shows(text);
        }
        // A setting that is the default is found by its name.
        page.evaluate(
            "document.getElementById('filter').value = 'kube-api-burst'; \
             document.getElementById('filter').dispatchEvent(new Event('input'));",
        );
        page.shows("--kube-api-burst");
        // Another object, typed by hand.
        page.evaluate(&format!(
            "for (const [id, value] of [['namespace', {markup}], ['name', {markup}]]) \
             document.getElementById(id).value = value; document.getElementById('search').requestSubmit();",
            markup = json!(MARKUP),
        ));
        page.shows(&format!("deployments.apps {MARKUP}/{MARKUP}"));
        page.shows("the cache has no such object");
        assert_eq!(page.evaluate("document.title"), "kube-controller-manager");
        assert_eq!(page.evaluate("document.querySelectorAll('img').length"), 0);
        assert_eq!(page.evaluate("location.href.split('#')[0]"), url);
        // Requests of the browser itself are no part of the page.
        page.errors.retain(|error| !error.contains("favicon.ico"));
        assert!(page.errors.is_empty(), "{:#?}", page.errors);
    })
    .await;
}

#[tokio::test]
async fn it_fits_a_phone_and_follows_the_colours_of_the_system() {
    look_at_page(|mut page, _url| {
        page.shows("creates replica set web-");
        let mut grounds = Vec::new();
        for scheme in ["light", "dark"] {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
            page.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
            for width in [1200, 400] {
                let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
                page.call("Emulation.setDeviceMetricsOverride", &metrics);
                let hidden = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
                assert_eq!(page.evaluate(hidden), 0, "{scheme}, {width}: it must not scroll sideways");
                if let Some(folder) = screenshots() {
                    page.picture(&Path::new(&folder).join(format!("{scheme}-{width}.png")));
                }
            }
            grounds.push(page.evaluate("getComputedStyle(document.body).backgroundColor"));
        }
        assert_ne!(grounds[0], grounds[1]);
    })
    .await;
}

#[tokio::test]
async fn its_policy_refuses_markup_and_scripts_that_are_not_its_own() {
    look_at_page(|mut page, url| {
        page.shows("Nothing needs attention");
        let refused = |page: &mut Browser, script: &str| {
            page.evaluate(&format!(
                "(async () => {{ try {{ {script}; return 'done'; }} catch {{ return 'refused'; }} }})()"
            ))
        };
        assert_eq!(refused(&mut page, "document.body.innerHTML = '<b>a</b>'"), "refused");
        assert_eq!(refused(&mut page, "document.createElement('script').src = 'https://example.com/a.js'"), "refused");
        assert_eq!(refused(&mut page, "await fetch('https://example.com/')"), "refused");
        assert_eq!(
            refused(&mut page, &format!("await fetch('{}')", url.replace("/debug/ui", "/debug/queues"))),
            "done"
        );
    })
    .await;
}
