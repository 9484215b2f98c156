//! Scenarios and measurements against a real Kubernetes API server.
