package otherprocess

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	provisionerAnnotation   = "volume.kubernetes.io/storage-provisioner"
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
	selectedNodeAnnotation  = "volume.kubernetes.io/selected-node"
	// standInPrefix begins the names of the provisioners that tests invent.
	standInPrefix = "mock-"
	standInPeriod = 100 * time.Millisecond
)

// startStandIn plays what upstream's fake volume plugin does in the test's process: an external provisioner, and a
// kubelet that finishes the pods which scrub recycled volumes. It returns a function that ends it.
func startStandIn(config *rest.Config) (func(), error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(standInPeriod)
		defer ticker.Stop()
		for ctx.Err() == nil {
			// What fails is tried again in the next round.
			finishRecyclers(ctx, client)
			provision(ctx, client)
			deleteReleased(ctx, client)
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}()
	return func() { cancel(); <-done }, nil
}

func finishRecyclers(ctx context.Context, client kubernetes.Interface) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if strings.HasPrefix(pod.Name, "recycler-for-") && pod.Status.Phase != corev1.PodSucceeded {
			pod.Status.Phase = corev1.PodSucceeded
			_, _ = client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		}
	}
}

func provision(ctx context.Context, client kubernetes.Interface) {
	claims, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		provisioner := claim.Annotations[provisionerAnnotation]
		if !strings.HasPrefix(provisioner, standInPrefix) || claim.Spec.VolumeName != "" ||
			claim.Spec.StorageClassName == nil {
			continue
		}
		class, err := client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
		if err != nil {
			continue
		}
		waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
		if waits && claim.Annotations[selectedNodeAnnotation] == "" {
			continue
		}
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{
				Name:        "pvc-" + string(claim.UID),
				Annotations: map[string]string{provisionedByAnnotation: provisioner},
			},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: claim.Spec.AccessModes,
				Capacity:    claim.Spec.Resources.Requests,
				ClaimRef: &corev1.ObjectReference{
					APIVersion: "v1", Kind: "PersistentVolumeClaim",
					Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
				},
				StorageClassName: class.Name,
				VolumeMode:       claim.Spec.VolumeMode,
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/" + string(claim.UID)},
				},
			},
		}
		if class.ReclaimPolicy != nil {
			volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
		}
		_, _ = client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	}
}

func deleteReleased(ctx context.Context, client kubernetes.Interface) {
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		isOurs := strings.HasPrefix(volume.Annotations[provisionedByAnnotation], standInPrefix)
		if isOurs && volume.Status.Phase == corev1.VolumeReleased &&
			volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			_ = client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{
				Preconditions: metav1.NewUIDPreconditions(string(volume.UID)),
			})
		}
	}
}
