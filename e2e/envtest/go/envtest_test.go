// Package envtest shows kube-controller-manager beside the API server of a test.
package envtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startControllerManager collects garbage and deletes namespaces until the test ends.
func startControllerManager(t *testing.T, environment *envtest.Environment) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	manager := exec.Command(os.Getenv("KUBE_CONTROLLER_MANAGER"),
		"--kubeconfig="+kubeconfig,
		"--controllers=garbage-collector-controller,namespace-controller",
		"--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=1000", "--kube-api-burst=2000")
	manager.Stderr = os.Stderr
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = manager.Process.Kill()
		_ = manager.Wait()
	})
}

func TestGarbageAndNamespacesAreDeleted(t *testing.T) {
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = environment.Stop() })
	startControllerManager(t, environment)

	ctx := context.Background()
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(object client.Object) {
		if err := api.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(object client.Object) {
		if err := api.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
	}
	isGone := func(object client.Object) {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := api.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Fatalf("%s is still there: %v", object.GetName(), err)
		}
	}

	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	create(shop)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner"}}
	create(owner)
	block := true
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "child", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block},
	}}}
	create(child)
	remove(owner)
	isGone(child)
	isGone(owner)

	create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}})
	remove(shop)
	isGone(shop)
}
