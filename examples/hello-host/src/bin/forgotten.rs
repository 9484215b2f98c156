//! What not to do: the plugin is a dependency, and nobody names it. It is not linked, and registers nothing.

fn main() -> std::process::ExitCode {
    kcm_controller_manager::main()
}
