//! Leader migration: controllers under a lease of their own.

use kcm_sandbox_apiserver::{DEPLOYMENTS, Fault, LEASES, PODS, REPLICA_SETS, Sandbox, Verb};
use rcgen::KeyPair;
use serde_json::json;

use crate::support::program::Folder;
use crate::support::server::Server;
use crate::{create, give_away, key, main_lease, spec, start, unexpected, until};

const MIGRATION: &str = "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n\
                         leaderName: migration\ncontrollerLeaders:\n";

#[tokio::test]
async fn controllers_that_migrate_run_under_a_lease_of_their_own() {
    let sandbox = Sandbox::default();
    let of_another = json!({
        "metadata": { "name": "migration", "namespace": "kube-system" },
        "spec": { "holderIdentity": "another", "leaseDurationSeconds": 3600, "leaseTransitions": 7 },
    });
    sandbox.create(&LEASES, of_another).expect("the lease is valid");
    create(&sandbox, &REPLICA_SETS, "bare", 1);
    create(&sandbox, &DEPLOYMENTS, "web", 1);
    let server = Server::start(sandbox).await;
    let sandbox = &server.sandbox;
    let folder = Folder::new();
    let entries = "- {name: deployment-controller, component: kube-controller-manager}\n";
    let file = folder.file("migration.yaml", &format!("{MIGRATION}{entries}"));
    let file = format!("--leader-migration-config={file}");
    let arguments = ["--enable-leader-migration", &file, "--controllers=deployment,replicaset"];
    let manager = start(&server, &folder, &arguments);
    until("the controller that does not migrate acts", || !sandbox.list(&PODS, None).is_empty()).await;
    assert_eq!(sandbox.list(&REPLICA_SETS, None).len(), 1, "another process holds the lease of the other controller");

    let free = json!({ "spec": { "holderIdentity": "" } });
    sandbox.patch(&LEASES, &key("migration"), &free).expect("the patch is valid");
    until("the controller that migrates acts", || sandbox.list(&REPLICA_SETS, None).len() == 2).await;
    let holders = [main_lease(), key("migration")].map(|lease| spec(sandbox, &lease)["holderIdentity"].clone());
    assert_eq!(holders[0], holders[1], "one identity for both");
    assert_eq!(spec(sandbox, &key("migration"))["leaseTransitions"], 8);

    manager.terminate();
    let ended = manager.ended().await;
    assert_eq!((ended.code, unexpected(&ended)), (Some(0), vec![]));
    for lease in [main_lease(), key("migration")] {
        assert_eq!(spec(sandbox, &lease)["holderIdentity"], "", "{lease} is released");
    }
}

#[tokio::test]
async fn the_loss_of_the_lease_of_migration_ends_the_process_too() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let file =
        folder.file("migration.yaml", &format!("{MIGRATION}- {{name: deployment-controller, component: '*'}}\n"));
    let file = format!("--leader-migration-config={file}");
    let mut manager = start(&server, &folder, &["--enable-leader-migration", &file]);
    manager.says("Starting the migrated controllers").await;
    manager.expect_error("Leader election lost");
    give_away(&server.sandbox, &key("migration"), 15);
    assert_eq!(manager.ended().await.code, Some(3));
    assert_eq!(spec(&server.sandbox, &main_lease())["holderIdentity"], "");
}

#[tokio::test]
async fn a_controller_that_another_component_runs_does_not_run() {
    let sandbox = Sandbox::default();
    create(&sandbox, &REPLICA_SETS, "bare", 1);
    create(&sandbox, &DEPLOYMENTS, "web", 1);
    let server = Server::start(sandbox).await;
    let folder = Folder::new();
    let entries =
        "- {name: deployment-controller, component: cloud-controller-manager}\n- {name: replicaset, component: x}\n";
    let file = folder.file("migration.yaml", &format!("{MIGRATION}{entries}"));
    let file = format!("--leader-migration-config={file}");
    let mut manager =
        start(&server, &folder, &["--enable-leader-migration", &file, "--controllers=deployment,replicaset"]);
    manager.says("leader migration names the alias \"replicaset\", which moves no controller").await;
    manager.says("\"Controller is disabled\" controller=\"deployment-controller\"").await;
    until("the other controller acts", || !server.sandbox.list(&PODS, None).is_empty()).await;
    assert_eq!(server.sandbox.list(&REPLICA_SETS, None).len(), 1);
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
}

/// As everything that acts as a service account needs it.
#[tokio::test]
async fn the_token_controller_runs_under_the_main_lease_whatever_the_configuration_says() {
    for component in ["'*'", "cloud-controller-manager"] {
        let server = Server::start(Sandbox::default()).await;
        let of_another = json!({
            "metadata": { "name": "migration", "namespace": "kube-system" },
            "spec": { "holderIdentity": "another", "leaseDurationSeconds": 3600, "leaseTransitions": 7 },
        });
        server.sandbox.create(&LEASES, of_another).expect("the lease is valid");
        let folder = Folder::new();
        let key = folder.file("sa.key", &KeyPair::generate().expect("a key").serialize_pem());
        let key = format!("--service-account-private-key-file={key}");
        let entries = format!("- {{name: serviceaccount-token-controller, component: {component}}}\n");
        let file = folder.file("migration.yaml", &format!("{MIGRATION}{entries}"));
        let file = format!("--leader-migration-config={file}");
        let mut manager =
            start(&server, &folder, &["--enable-leader-migration", &file, &key, "--controllers=replicaset"]);
        manager.says("\"Started controller\" controller=\"serviceaccount-token-controller\"").await;
        manager.terminate();
        assert_eq!(manager.ended().await.code, Some(0));
    }
}

#[tokio::test]
async fn a_lost_lease_of_migration_stops_no_writes_under_the_main_lease() {
    let sandbox = Sandbox::default();
    // The migrated controller takes some seconds to stop.
    let stalled = sandbox.faults().inject(Fault::on(Verb::Create).resource(REPLICA_SETS).stall());
    create(&sandbox, &DEPLOYMENTS, "web", 1);
    let server = Server::start(sandbox).await;
    let folder = Folder::new();
    let entries = "- {name: deployment-controller, component: kube-controller-manager}\n";
    let file = folder.file("migration.yaml", &format!("{MIGRATION}{entries}"));
    let file = format!("--leader-migration-config={file}");
    let controllers = "--controllers=deployment,replicaset";
    let arguments = ["--enable-leader-migration", &file, controllers, "--exit-on-lost-lease=false"];
    let mut manager = start(&server, &folder, &arguments);
    until("the migrated controller writes", || stalled.hits() == 1).await;
    give_away(&server.sandbox, &key("migration"), 3600);
    manager.says("Lease lost; stopping the migrated controllers").await;
    create(&server.sandbox, &REPLICA_SETS, "bare", 1);
    until("the other controller acts", || !server.sandbox.list(&PODS, None).is_empty()).await;
    manager.terminate();
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(0));
    let is_held_back = |line: &&str| line.contains("bare") && line.contains("sends no writes");
    assert_eq!(ended.stderr.lines().find(is_held_back), None);
}
