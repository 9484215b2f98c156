//! The sub-command `config`, which prints and checks settings.

use kcm_config::{Initial, Row};

use crate::command_line::subcommand::{Action, Invocation, Subcommand};

/// The setting of the form in which settings are printed.
const OUTPUT: Row = Row::new("output", "Config", Initial::String(""))
    .short('o')
    .help("Output format: yaml or json. Empty: yaml for `config default`, aligned lines for `config effective`.")
    .check(|value| {
        let is_known = ["", "yaml", "json"].contains(&value.to_string().as_str());
        if is_known { Ok(()) } else { Err("must be yaml or json".to_owned()) }
    });

/// The operand before the file to check.
const VALIDATE: &str = "validate";

/// Prints and checks settings.
pub(crate) const CONFIG: Subcommand = Subcommand {
    name: "config",
    usages: &["config effective [FLAGS]", "config validate FILE [FLAGS]", "config default"],
    rows: &[OUTPUT],
    file_after: Some(VALIDATE),
    quiet: false,
    run,
};

fn run(Invocation { settings, manager }: Invocation) -> Result<Action, Vec<String>> {
    let output: String = settings.get("output").unwrap_or_default();
    let operands: Vec<&str> = settings.operands().iter().map(String::as_str).collect();
    let printed = match (&operands[..], output.as_str()) {
        (["default"], "json") => settings.defaults().render_json(),
        (["default"], _) => settings.defaults().render_yaml(),
        (["effective"], "json") => settings.render_json_with_origins(),
        (["effective"], "yaml") => settings.render_yaml_with_origins(),
        (["effective"], _) => settings.render(),
        ([VALIDATE, file], _) => {
            drop(manager?);
            let warnings = settings.warnings().iter().map(|warning| format!("warning: {warning}\n"));
            format!("{}{file} is valid\n", warnings.collect::<String>())
        }
        _other => {
            return Err(vec![
                "config: give `config effective` to print every setting and where its value comes from, \
                 `config validate FILE` to check a file, `config default` to print one with all defaults, \
                 or --config=FILE to read settings from a file"
                    .to_owned(),
            ]);
        }
    };
    Ok(Action::Print(printed))
}
