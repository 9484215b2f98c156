//! An example of a mistake: the plugin is a dependency that is never named, so it is not linked and registers nothing.

fn main() -> std::process::ExitCode {
    kcm_controller_manager::main()
}
