//! The controller manager with its built-in controllers and a plugin.

// Naming a crate links it; a dependency that is never named registers nothing.
use kcm_controllers as _;
use kcm_example_hello as _;

fn main() -> std::process::ExitCode {
    kcm_controller_manager::main()
}
