package main

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

func election(ctx context.Context, c *clients) error {
	leads := make(chan string, 10)
	start := func(ctx context.Context, name string) error {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, c.namespace, "leader",
			c.typed.CoreV1(), c.typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		if err != nil {
			return err
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second,
			RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		go elector.Run(ctx)
		return nil
	}
	firstCtx, resign := context.WithCancel(ctx)
	secondCtx, end := context.WithCancel(ctx)
	defer end()
	defer resign()
	if err := start(firstCtx, "first"); err != nil {
		return err
	}
	if err := equal("the leader", <-leads, "first"); err != nil {
		return err
	}
	if err := start(secondCtx, "second"); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond)
	if len(leads) > 0 {
		return fmt.Errorf("two leaders")
	}
	resign()
	select {
	case name := <-leads:
		return equal("the next leader", name, "second")
	case <-ctx.Done():
		return fmt.Errorf("no next leader")
	}
}

func mapper(_ context.Context, c *clients) error {
	cached := memory.NewMemCacheClient(c.typed.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, func(string) {})
	for short, expected := range map[string]string{
		"deploy": "apps/v1, Resource=deployments", "svc": "/v1, Resource=services", "sa": "/v1, Resource=serviceaccounts",
		"hpa": "autoscaling/v2, Resource=horizontalpodautoscalers", "crd": "apiextensions.k8s.io/v1, Resource=customresourcedefinitions",
		"pdb": "policy/v1, Resource=poddisruptionbudgets", "roles": "rbac.authorization.k8s.io/v1, Resource=roles",
	} {
		resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: short})
		if err != nil {
			return err
		}
		if err := equal("the resource of "+short, resource.String(), expected); err != nil {
			return err
		}
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "batch", Kind: "CronJob"})
	if err != nil {
		return err
	}
	_, lists, err := discovery.ServerGroupsAndResources(c.typed.Discovery())
	if err != nil {
		return err
	}
	preferred, err := discovery.ServerPreferredNamespacedResources(c.typed.Discovery())
	if err != nil {
		return err
	}
	version, err := c.typed.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	_, err = c.typed.Discovery().OpenAPISchema()
	return first(
		err,
		equal("the mapping of CronJob", mapping.Resource.String(), "batch/v1, Resource=cronjobs"),
		equal("whether there are groups", len(lists) > 15 && len(preferred) > 8, true),
		equal("the minor version", version.Minor, "36"),
	)
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
var boats = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boats"}

func object(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

func customResources(ctx context.Context, c *clients) error {
	definition := object(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "boats.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"kind": "Boat", "plural": "boats", "singular": "boat"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	})
	if _, err := c.dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	api := c.dynamic.Resource(boats).Namespace(c.namespace)
	err := eventually(ctx, "the kind is served", func() (bool, error) {
		got, err := c.dynamic.Resource(definitions).Get(ctx, "boats.example.com", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, condition := range conditions {
			if c := condition.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				_, err := api.List(ctx, metav1.ListOptions{})
				return err == nil, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, c.namespace, nil)
	informer := factory.ForResource(boats).Informer()
	events := make(seen, 100)
	handler := events.handler(func(got any) string {
		length, _, _ := unstructured.NestedInt64(got.(*unstructured.Unstructured).Object, "spec", "length")
		return fmt.Sprint(length)
	})
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	boat := func(length int64) *unstructured.Unstructured {
		return object(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Boat", "metadata": map[string]any{"name": "one"},
			"spec": map[string]any{"length": length},
		})
	}
	created, err := api.Create(ctx, boat(7), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(created.Object, "afloat", "status", "state"); err != nil {
		return err
	}
	floating, err := api.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if _, err := api.Apply(ctx, "one", boat(8), metav1.ApplyOptions{FieldManager: "go", Force: true}); err != nil {
		return err
	}
	if err := api.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		return err
	}
	state, _, _ := unstructured.NestedString(floating.Object, "status", "state")
	return first(
		equal("the state", state, "afloat"),
		events.next(ctx, "added 7"), events.next(ctx, "updated 7"), events.next(ctx, "updated 8"), events.next(ctx, "deleted 8"),
		c.dynamic.Resource(definitions).Delete(ctx, "boats.example.com", metav1.DeleteOptions{}),
	)
}

func recordedEvents(ctx context.Context, c *clients) error {
	about, err := c.configMap(ctx, "talked-about", nil, "1")
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: c.typed.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "check"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Talked", "about it")
	}
	return eventually(ctx, "an event with its count", func() (bool, error) {
		list, err := c.typed.CoreV1().Events(c.namespace).Search(scheme.Scheme, about)
		if err != nil {
			return false, err
		}
		return len(list.Items) == 1 && list.Items[0].Count == 3, nil
	})
}

func tokens(ctx context.Context, c *clients) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := c.typed.CoreV1().ServiceAccounts(c.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{}
	token, err := c.typed.CoreV1().ServiceAccounts(c.namespace).CreateToken(ctx, "robot", request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}
	reviewed, err := c.typed.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return first(
		equal("whether it is good", reviewed.Status.Authenticated, true),
		equal("the user", reviewed.Status.User.Username, "system:serviceaccount:"+c.namespace+":robot"),
	)
}
