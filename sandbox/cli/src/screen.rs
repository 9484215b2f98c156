//! [`Screen`]: the capabilities of the terminal.

use std::env;

use crate::console;

/// Columns of a line; the last of 80 stays free, since some terminals wrap there.
pub(super) const WIDTH: usize = 79;
/// Rows that the demo draws on; the cursor needs one more.
pub(super) const HEIGHT: usize = 23;

/// The display mode of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Screen {
    /// Redraws in place; otherwise each change is one line.
    pub(super) redraws: bool,
    pub(super) colour: bool,
    /// Uses block characters; otherwise ASCII only.
    pub(super) unicode: bool,
}

impl Screen {
    /// Reads the terminal and the environment of this process.
    pub(super) fn of_process() -> Self {
        Self::of(console::window(), |name| env::var(name).unwrap_or_default())
    }

    /// Redraws on a terminal that is large enough; without colours if `NO_COLOR` is set.
    ///
    /// # Upstream
    /// <https://no-color.org>
    fn of(window: Option<(u16, u16)>, set: impl Fn(&str) -> String) -> Self {
        let able = !["", "dumb"].contains(&set("TERM").as_str());
        let fits = |given: u16, needed: usize| given == 0 || usize::from(given) > needed;
        let large = window.is_some_and(|(columns, rows)| fits(columns, WIDTH) && fits(rows, HEIGHT));
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().map(&set).find(|value| !value.is_empty());
        let unicode = locale.is_none_or(|locale| locale.to_uppercase().replace('-', "").contains("UTF8"));
        Self { redraws: able && large, colour: able && window.is_some() && set("NO_COLOR").is_empty(), unicode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_is_what_the_terminal_can_do() {
        let screen = |window, variables: &[(&str, &str)]| {
            let set = |name: &str| variables.iter().find(|(set, _)| *set == name).map_or("", |(_, value)| value);
            let Screen { redraws, colour, unicode } = Screen::of(window, |name| set(name).to_owned());
            (redraws, colour, unicode)
        };
        let usual = [("TERM", "xterm-256color"), ("LANG", "en_US.UTF-8")];
        assert_eq!(screen(Some((80, 24)), &usual), (true, true, true));
        // An unknown size does not count as small.
        assert_eq!(screen(Some((0, 0)), &usual), (true, true, true));
        assert_eq!(screen(Some((79, 24)), &usual), (false, true, true));
        assert_eq!(screen(Some((80, 23)), &usual), (false, true, true));
        assert_eq!(screen(None, &usual), (false, false, true));
        assert_eq!(screen(Some((80, 24)), &[("TERM", "xterm"), ("NO_COLOR", "1")]), (true, false, true));
        assert_eq!(screen(Some((80, 24)), &[("TERM", "dumb"), ("LANG", "C")]), (false, false, false));
        assert_eq!(
            screen(Some((80, 24)), &[("TERM", "xterm"), ("LANG", "de_DE.utf8"), ("LC_ALL", "C")]),
            (true, true, false)
        );
    }
}
