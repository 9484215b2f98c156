#!/bin/sh
# Garbage collection and the deletion of namespaces on nothing but etcd and kube-apiserver.
# KUBEBUILDER_ASSETS has etcd, kube-apiserver and kubectl, KUBE_CONTROLLER_MANAGER is this project's binary.
set -eu
etcd=${ETCD_PORT:-2379} etcd_peer=${ETCD_PEER_PORT:-2380} api=${API_PORT:-6443}
dir=$(mktemp -d) pids=
trap 'kill -KILL $pids; wait; rm -rf "$dir"' EXIT

"$KUBEBUILDER_ASSETS/etcd" --data-dir="$dir/etcd" --unsafe-no-fsync \
  --listen-client-urls="http://127.0.0.1:$etcd" --advertise-client-urls="http://127.0.0.1:$etcd" \
  --listen-peer-urls="http://127.0.0.1:$etcd_peer" --initial-advertise-peer-urls="http://127.0.0.1:$etcd_peer" \
  --initial-cluster="default=http://127.0.0.1:$etcd_peer" > "$dir/etcd.log" 2>&1 &
pids="$pids $!"

openssl genrsa -out "$dir/accounts.key" 2048 2> /dev/null
echo 'secret,admin,admin,system:masters' > "$dir/tokens.csv"
"$KUBEBUILDER_ASSETS/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd" --cert-dir="$dir" \
  --bind-address=127.0.0.1 --secure-port="$api" --token-auth-file="$dir/tokens.csv" --authorization-mode=RBAC \
  --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$dir/accounts.key" \
  --service-account-signing-key-file="$dir/accounts.key" --disable-admission-plugins=ServiceAccount \
  > "$dir/kube-apiserver.log" 2>&1 &
pids="$pids $!"

cat > "$dir/kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{ name: test, cluster: { server: "https://127.0.0.1:$api", insecure-skip-tls-verify: true } }]
users: [{ name: admin, user: { token: secret } }]
contexts: [{ name: test, context: { cluster: test, user: admin } }]
current-context: test
EOF
kubectl() { "$KUBEBUILDER_ASSETS/kubectl" --kubeconfig="$dir/kubeconfig" "$@"; }
until kubectl get --raw /readyz > /dev/null 2>&1; do sleep 0.2; done

"$KUBE_CONTROLLER_MANAGER" --kubeconfig="$dir/kubeconfig" \
  --controllers=garbage-collector-controller,namespace-controller \
  --leader-elect=false --secure-port=0 --kube-api-qps=1000 --kube-api-burst=2000 2> "$dir/manager.log" &
pids="$pids $!"

# What your tests do.
kubectl create namespace shop
kubectl create configmap owner --namespace=shop
uid=$(kubectl get configmap owner --namespace=shop --output=jsonpath='{.metadata.uid}')
kubectl apply --namespace=shop --filename=- <<EOF
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences: [{ apiVersion: v1, kind: ConfigMap, name: owner, uid: $uid }]
EOF
kubectl delete configmap owner --namespace=shop
kubectl wait --for=delete configmap/child --namespace=shop --timeout=60s
kubectl delete namespace shop --timeout=60s
