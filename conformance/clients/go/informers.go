package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func typedInformer(ctx context.Context, c *clients) error {
	labels := map[string]string{"check": "typed-informer"}
	if _, err := c.configMap(ctx, "informed-before", labels, "1"); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace(c.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "check=typed-informer" }))
	informer := factory.Core().V1().ConfigMaps()
	events := make(seen, 100)
	handler := events.handler(func(object any) string {
		configMap := object.(*corev1.ConfigMap)
		return configMap.Name + "=" + configMap.Data["key"]
	})
	if _, err := informer.Informer().AddEventHandler(handler); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := events.next(ctx, "added informed-before=1"); err != nil {
		return err
	}
	created, err := c.configMap(ctx, "informed", labels, "1")
	if err != nil {
		return err
	}
	created.Data["key"] = "2"
	if _, err := c.typed.CoreV1().ConfigMaps(c.namespace).Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := first(events.next(ctx, "added informed=1"), events.next(ctx, "updated informed=2")); err != nil {
		return err
	}
	if err := c.typed.CoreV1().ConfigMaps(c.namespace).Delete(ctx, "informed", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := events.next(ctx, "deleted informed=2"); err != nil {
		return err
	}
	// An object that no longer matches leaves the cache.
	patch := []byte(`{"metadata":{"labels":{"check":"other"}}}`)
	if err := c.merge(ctx, "informed-before", patch); err != nil {
		return err
	}
	return events.next(ctx, "deleted informed-before=1")
}

// recorder remembers the queries of what goes through it.
type recorder struct {
	next    http.RoundTripper
	queries chan string
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case r.queries <- request.URL.RawQuery:
	default:
	}
	return r.next.RoundTrip(request)
}

func streamedList(ctx context.Context, c *clients) error {
	queries := make(chan string, 100)
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, queries} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for n := range 30 {
		if _, err := c.configMap(ctx, fmt.Sprintf("streamed-%d", n), map[string]string{"check": "streamed"}, "1"); err != nil {
			return err
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(c.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "check=streamed" }))
	informer := factory.Core().V1().ConfigMaps().Informer()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the informer does not sync")
	}
	if err := equal("the number of objects", len(informer.GetStore().List()), 30); err != nil {
		return err
	}
	// One request, which is the watch: a list beside it would mean that the stream was refused.
	query := <-queries
	if !strings.Contains(query, "sendInitialEvents=true") || len(queries) > 0 {
		return fmt.Errorf("the first list was not streamed: %q and %d more", query, len(queries))
	}
	return nil
}

func metadataInformer(ctx context.Context, c *clients) error {
	factory := metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, c.namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = "check=metadata" })
	informer := factory.ForResource(configMaps).Informer()
	events := make(seen, 100)
	handler := events.handler(func(object any) string {
		partial := object.(*metav1.PartialObjectMetadata)
		return partial.Name + " " + partial.Annotations["note"]
	})
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	if _, err := c.configMap(ctx, "described", map[string]string{"check": "metadata"}, "1"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.Start(ctx.Done())
	if err := events.next(ctx, "added described "); err != nil {
		return err
	}
	if err := c.merge(ctx, "described", []byte(`{"metadata":{"annotations":{"note":"read"}}}`)); err != nil {
		return err
	}
	if err := events.next(ctx, "updated described read"); err != nil {
		return err
	}
	got, err := c.metadata.Resource(configMaps).Namespace(c.namespace).Get(ctx, "described", metav1.GetOptions{})
	if err != nil {
		return err
	}
	list, err := c.metadata.Resource(configMaps).Namespace(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "check=metadata"})
	if err != nil {
		return err
	}
	return first(
		equal("the annotation", got.Annotations["note"], "read"),
		equal("the number of items", len(list.Items), 1),
	)
}

func bookmarks(ctx context.Context, c *clients) error {
	yes, seconds := true, int64(15)
	watcher, err := c.typed.CoreV1().ConfigMaps(c.namespace).Watch(ctx, metav1.ListOptions{
		AllowWatchBookmarks: true, SendInitialEvents: &yes, TimeoutSeconds: &seconds,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, LabelSelector: "check=streamed",
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	added := 0
	for event := range watcher.ResultChan() {
		switch event.Type {
		case watch.Added:
			added++
		case watch.Bookmark:
			object := event.Object.(*corev1.ConfigMap)
			return first(
				equal("the number of first events", added, 30),
				equal("the annotation", object.Annotations[metav1.InitialEventsAnnotationKey], "true"),
				equal("whether there is a version", object.ResourceVersion != "", true),
			)
		default:
			return fmt.Errorf("unexpected %s: %v", event.Type, event.Object)
		}
	}
	return fmt.Errorf("the watch ended after %d events", added)
}
