//! The built-in controllers, a crate for each area.
//!
//! A controller registers itself by being linked. A host that writes `use kcm_controllers as _;` links the controllers of
//! all enabled areas. Each area is a cargo feature, and all are enabled by default.
//!
//! Areas are named after the special interest groups of Kubernetes that own the controllers. An area is a crate in a folder beside this one, so that areas compile side by side and each has its own test binary.
//! It is created with its first controller. What adds one:
//!
//! 1. `controllers/AREA/Cargo.toml` with the package `kcm-controllers-AREA`, and its `src/lib.rs` with a module for each
//!    controller.
//! 2. In the root manifest a workspace member and a workspace dependency.
//! 3. In this package a feature and a `pub use`.
//! 4. A row in `ARROWS` and in `FORBIDDEN` of `controller-manager/tests/it/architecture.rs`, and a controller of the area in
//!    `controller-manager/tests/it/parity.rs`.

#[cfg(feature = "api_machinery")]
pub use kcm_controllers_api_machinery as api_machinery;
#[cfg(feature = "apps")]
pub use kcm_controllers_apps as apps;
#[cfg(feature = "auth")]
pub use kcm_controllers_auth as auth;
#[cfg(feature = "autoscaling")]
pub use kcm_controllers_autoscaling as autoscaling;
#[cfg(feature = "network")]
pub use kcm_controllers_network as network;
#[cfg(feature = "node")]
pub use kcm_controllers_node as node;
#[cfg(feature = "resource")]
pub use kcm_controllers_resource as resource;
#[cfg(feature = "storage")]
pub use kcm_controllers_storage as storage;
