package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apps "k8s.io/client-go/applyconfigurations/apps/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// merge sends a merge patch for a ConfigMap.
func (c *clients) merge(ctx context.Context, name string, patch []byte) error {
	_, err := c.typed.CoreV1().ConfigMaps(c.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func pages(ctx context.Context, c *clients) error {
	api := c.typed.CoreV1().ConfigMaps(c.namespace)
	for n := range 25 {
		if _, err := c.configMap(ctx, fmt.Sprintf("page-%02d", n), map[string]string{"check": "pages"}, "1"); err != nil {
			return err
		}
	}
	options := metav1.ListOptions{LabelSelector: "check=pages", Limit: 10}
	page, err := api.List(ctx, options)
	if err != nil {
		return err
	}
	if err := first(
		equal("the length of the first page", len(page.Items), 10),
		// The count is left out where a selector makes it unknown.
		equal("whether the rest is counted", page.RemainingItemCount == nil, true),
	); err != nil {
		return err
	}
	// What is created between the pages is not in them.
	if _, err := c.configMap(ctx, "page-99", map[string]string{"check": "pages"}, "1"); err != nil {
		return err
	}
	version, total := page.ResourceVersion, len(page.Items)
	for page.Continue != "" {
		options.Continue = page.Continue
		if page, err = api.List(ctx, options); err != nil {
			return err
		}
		total += len(page.Items)
		if err := equal("the version of a page", page.ResourceVersion, version); err != nil {
			return err
		}
	}
	if err := equal("the number of objects in all pages", total, 25); err != nil {
		return err
	}
	paged := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return api.List(ctx, options)
	}))
	paged.PageSize = 7
	count := 0
	err = paged.EachListItem(ctx, metav1.ListOptions{LabelSelector: "check=pages"}, func(runtime.Object) error {
		count++
		return nil
	})
	if err != nil {
		return err
	}
	options.Continue = "nonsense"
	_, err = api.List(ctx, options)
	return first(
		equal("the number of objects of the pager", count, 26),
		equal("whether a wrong token is a bad request", apierrors.IsBadRequest(err), true),
	)
}

func selectors(ctx context.Context, c *clients) error {
	for name, tier := range map[string]string{"select-a": "front", "select-b": "back", "select-c": "back"} {
		labels := map[string]string{"check": "selectors", "tier": tier}
		if _, err := c.configMap(ctx, name, labels, "1"); err != nil {
			return err
		}
	}
	for _, this := range []struct {
		labels, fields string
		count          int
	}{
		{"check=selectors", "", 3},
		{"check=selectors,tier in (back)", "", 2},
		{"check=selectors,tier!=back", "", 1},
		{"check=selectors,!missing", "", 3},
		{"check=selectors", "metadata.name=select-a", 1},
		{"check=selectors", "metadata.name!=select-a", 2},
		{"check=selectors", "metadata.namespace=elsewhere", 0},
	} {
		options := metav1.ListOptions{LabelSelector: this.labels, FieldSelector: this.fields}
		list, err := c.typed.CoreV1().ConfigMaps(c.namespace).List(ctx, options)
		if err != nil {
			return err
		}
		if err := equal("the count of "+this.labels+" "+this.fields, len(list.Items), this.count); err != nil {
			return err
		}
	}
	options := metav1.ListOptions{LabelSelector: "check=selectors"}
	if err := c.typed.CoreV1().ConfigMaps(c.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, options); err != nil {
		return err
	}
	list, err := c.typed.CoreV1().ConfigMaps(c.namespace).List(ctx, options)
	if err != nil {
		return err
	}
	return equal("the count after all are deleted", len(list.Items), 0)
}

func conflicts(ctx context.Context, c *clients) error {
	api := c.typed.CoreV1().ConfigMaps(c.namespace)
	old, err := c.configMap(ctx, "contended", nil, "")
	if err != nil {
		return err
	}
	var waiting sync.WaitGroup
	failures := make([]error, 8)
	for n := range failures {
		waiting.Go(func() {
			backoff := retry.DefaultBackoff
			backoff.Steps = 30
			failures[n] = retry.RetryOnConflict(backoff, func() error {
				object, err := api.Get(ctx, "contended", metav1.GetOptions{})
				if err != nil {
					return err
				}
				object.Data["key"] += "x"
				_, err = api.Update(ctx, object, metav1.UpdateOptions{})
				return err
			})
		})
	}
	waiting.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	_, stale := api.Update(ctx, old, metav1.UpdateOptions{})
	object, err := api.Get(ctx, "contended", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return first(
		equal("the value", object.Data["key"], "xxxxxxxx"),
		equal("whether an old version conflicts", apierrors.IsConflict(stale), true),
	)
}

func serverSideApply(ctx context.Context, c *clients) error {
	api := c.typed.AppsV1().Deployments(c.namespace)
	labels := map[string]string{"app": "applied"}
	desired := func(image string) *apps.DeploymentApplyConfiguration {
		return apps.Deployment("applied", c.namespace).WithSpec(apps.DeploymentSpec().
			WithReplicas(2).
			WithSelector(meta.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(core.PodTemplateSpec().WithLabels(labels).WithSpec(core.PodSpec().
				WithContainers(core.Container().WithName("main").WithImage(image)))))
	}
	one := metav1.ApplyOptions{FieldManager: "one"}
	applied, err := api.Apply(ctx, desired("example.com/web:1"), one)
	if err != nil {
		return err
	}
	again, err := api.Apply(ctx, desired("example.com/web:1"), one)
	if err != nil {
		return err
	}
	if err := equal("the version after nothing new", again.ResourceVersion, applied.ResourceVersion); err != nil {
		return err
	}
	_, err = api.Apply(ctx, desired("example.com/web:2"), metav1.ApplyOptions{FieldManager: "two"})
	if err := equal("whether another manager conflicts", apierrors.IsConflict(err), true); err != nil {
		return err
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || len(status.Status().Details.Causes) != 1 ||
		status.Status().Details.Causes[0].Type != metav1.CauseTypeFieldManagerConflict {
		return fmt.Errorf("the conflict has no cause: %v", err)
	}
	forced, err := api.Apply(ctx, desired("example.com/web:2"), metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return err
	}
	owned, err := apps.ExtractDeployment(forced, "one")
	if err != nil {
		return err
	}
	return first(
		equal("the image", forced.Spec.Template.Spec.Containers[0].Image, "example.com/web:2"),
		equal("the replicas that are still owned", ptr.Deref(owned.Spec.Replicas, 0), 2),
		equal("whether the image is still owned", owned.Spec.Template.Spec.Containers[0].Image == nil, true),
	)
}

func patches(ctx context.Context, c *clients) error {
	api := c.typed.AppsV1().Deployments(c.namespace)
	labels := map[string]string{"app": "patched"}
	object := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "patched"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/web:1"}}},
			},
		},
	}
	if _, err := api.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	for kind, patch := range map[types.PatchType]string{
		types.StrategicMergePatchType: `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.com/side:1"}]}}}}`,
		types.MergePatchType:          `{"metadata":{"annotations":{"note":"merged"}}}`,
		types.JSONPatchType:           `[{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":3}]`,
	} {
		if _, err := api.Patch(ctx, "patched", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	got, err := api.Get(ctx, "patched", metav1.GetOptions{})
	if err != nil {
		return err
	}
	dry, err := api.Patch(ctx, "patched", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	return first(
		equal("the number of containers", len(got.Spec.Template.Spec.Containers), 2),
		equal("the first container", got.Spec.Template.Spec.Containers[0].Name, "side"),
		equal("the annotation", got.Annotations["note"], "merged"),
		equal("the replicas", *got.Spec.Replicas, 3),
		equal("the generation", got.Generation, 4),
		equal("the replicas of a dry run", *dry.Spec.Replicas, 9),
	)
}

func subresources(ctx context.Context, c *clients) error {
	api := c.typed.AppsV1().Deployments(c.namespace)
	scale, err := api.GetScale(ctx, "patched", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 5
	if _, err := api.UpdateScale(ctx, "patched", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	object, err := api.Get(ctx, "patched", metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.Spec.Replicas = ptr.To[int32](7)
	object.Status.ReadyReplicas, object.Status.Replicas = 4, 4
	updated, err := api.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return first(
		equal("the replicas, which are no status", *updated.Spec.Replicas, 5),
		equal("the ready replicas", updated.Status.ReadyReplicas, 4),
		equal("the selector of the scale", scale.Status.Selector, "app=patched"),
	)
}

func finalizers(ctx context.Context, c *clients) error {
	api := c.typed.CoreV1().ConfigMaps(c.namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
	created, err := api.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	other := types.UID("00000000-0000-0000-0000-000000000000")
	wrong := api.Delete(ctx, "held", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	if err := api.Delete(ctx, "held", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &created.UID}}); err != nil {
		return err
	}
	held, err := api.Get(ctx, "held", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := c.merge(ctx, "held", []byte(`{"metadata":{"finalizers":null}}`)); err != nil {
		return err
	}
	_, err = api.Get(ctx, "held", metav1.GetOptions{})
	return first(
		equal("whether another UID conflicts", apierrors.IsConflict(wrong), true),
		equal("whether it waits to be deleted", held.DeletionTimestamp != nil, true),
		equal("whether it is gone", apierrors.IsNotFound(err), true),
	)
}

func typedErrors(ctx context.Context, c *clients) error {
	api := c.typed.CoreV1().ConfigMaps(c.namespace)
	_, missing := api.Get(ctx, "missing", metav1.GetOptions{})
	if _, err := c.configMap(ctx, "twice", nil, "1"); err != nil {
		return err
	}
	_, twice := c.configMap(ctx, "twice", nil, "1")
	_, invalid := c.configMap(ctx, "Not_a_name", nil, "1")
	_, unnamed := c.typed.CoreV1().ConfigMaps("nowhere").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	return first(
		equal("not found", apierrors.IsNotFound(missing), true),
		equal("already exists", apierrors.IsAlreadyExists(twice), true),
		equal("invalid", apierrors.IsInvalid(invalid), true),
		equal("no namespace", apierrors.IsNotFound(unnamed), true),
		equal("the message", missing.Error(), `configmaps "missing" not found`),
	)
}
