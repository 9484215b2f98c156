//! Responses to commands.

use crate::support::{lab, pass, pod};

#[tokio::test(start_paused = true)]
async fn commands_answer_in_words() {
    let lab = lab(2);
    pass(1_000).await;
    assert_eq!(
        lab.command("nodes"),
        "NAME    STATE  PODS   CPU  MEMORY\nnode-1  Ready  0/110  8    16Gi\nnode-2  Ready  0/110  8    16Gi"
    );
    lab.command("stop node-2");
    lab.command("cordon node-2");
    assert!(lab.command("nodes").contains("node-2  Ready,stopped,cordoned  0/110"));
    lab.create(pod("web", "web:missing"));
    pass(10_000).await;
    assert_eq!(
        lab.command("pods default"),
        "NAMESPACE  NAME  READY  STATUS            NODE\ndefault    web   0/1    ImagePullBackOff  node-1"
    );
    assert_eq!(lab.command("add 2"), "added node-3, node-4");
    assert_eq!(lab.command(""), "");
    assert!(lab.command("help").lines().any(|line| line.starts_with("drain NODE")));
}

#[tokio::test(start_paused = true)]
async fn unknown_words_are_answered_with_the_nearest_known_one() {
    let lab = lab(1);
    pass(1_000).await;
    for (text, expected) in [
        ("drian node-1", "unknown command \"drian\", did you mean \"drain\"?; \"help\" lists all"),
        ("explode", "unknown command \"explode\"; \"help\" lists all"),
        ("stop node1", "unknown node \"node1\", did you mean \"node-1\"?"),
        ("stop", "use: stop NODE"),
        ("stop node-1 now", "use: stop NODE"),
        ("add many", "use: add [COUNT]"),
        ("nodes all", "use: nodes"),
    ] {
        assert_eq!(lab.cluster.command(text).map_err(|error| error.to_string()), Err(expected.to_owned()), "{text}");
    }
}
