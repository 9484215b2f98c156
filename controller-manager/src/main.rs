//! The binary `kube-controller-manager`.

fn main() -> std::process::ExitCode {
    kcm_controller_manager::main()
}
