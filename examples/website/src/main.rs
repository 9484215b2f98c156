//! The operator as a program, with the command line, configuration file and metrics of every host.

use kcm_example_website as _;

fn main() -> std::process::ExitCode {
    kcm_controller_manager::main()
}
