//! The status page: one document that loads nothing but the state.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");

/// The parts of the script, in their order. All share one scope.
const SCRIPT: &[&str] = &[
    include_str!("page/dom.js"),
    include_str!("page/sections.js"),
    include_str!("page/explain.js"),
    include_str!("page/main.js"),
];

/// The page with its policy.
#[derive(Debug)]
pub(crate) struct Page {
    /// The document of the page.
    pub(crate) html: String,
    /// Value of the header `Content-Security-Policy`.
    pub(crate) policy: String,
}

impl Page {
    /// Joins the document, and names its script and its style in the policy.
    pub(crate) fn new() -> Self {
        let script = SCRIPT.concat();
        let html = HTML.replacen("{style}", STYLE, 1).replacen("{script}", &script, 1);
        // Nothing else runs, nothing is loaded from elsewhere, and no string becomes markup.
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
            hash(&script),
            hash(STYLE),
        );
        Self { html, policy }
    }
}

/// The hash of an element's content, as policies name it.
fn hash(content: &str) -> String {
    format!("sha256-{}", STANDARD.encode(digest(&SHA256, content.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of the only element of that name.
    fn element<'a>(html: &'a str, name: &str) -> &'a str {
        let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
        assert_eq!((html.matches(&begin).count(), html.matches(&end).count()), (1, 1), "{name}");
        let rest = html.split_once(&begin).expect("it was counted").1;
        rest.split_once(&end).expect("it was counted").0
    }

    #[test]
    fn the_policy_names_the_script_and_the_style_of_the_page() {
        let page = Page::new();
        for (name, directive) in [("script", "script-src"), ("style", "style-src")] {
            let allowed = format!("{directive} '{}';", hash(element(&page.html, name)));
            assert!(page.policy.contains(&allowed), "{allowed} is not in {}", page.policy);
        }
        assert!(page.policy.starts_with("default-src 'none';") && !page.policy.contains("unsafe"), "{}", page.policy);
    }

    #[test]
    fn the_page_makes_no_markup_of_strings_and_loads_nothing_from_elsewhere() {
        let page = Page::new();
        for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"] {
            assert!(!page.html.contains(sink), "{sink}");
        }
        // Attributes of elements are no part of the policy's hashes.
        for attribute in [" style=", " onclick=", " onload=", " src=", "@import", "url("] {
            assert!(!page.html.contains(attribute), "{attribute}");
        }
        let addresses: Vec<&str> = page
            .html
            .split("http")
            .skip(1)
            .filter(|rest| rest.starts_with("s://") || rest.starts_with("://"))
            .collect();
        // The name of a namespace, which is never loaded.
        assert!(addresses.iter().all(|rest| rest.starts_with("://www.w3.org/2000/svg")), "{addresses:?}");
    }
}
