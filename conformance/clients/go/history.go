package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// forget writes until the server has lost what was before.
func (c *clients) forget(ctx context.Context) error {
	for n := range history + 1 {
		if err := c.merge(ctx, "page-00", fmt.Appendf(nil, `{"data":{"key":"%d"}}`, n)); err != nil {
			return err
		}
	}
	return nil
}

func expired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return fmt.Errorf("not an expiry: %v", err)
}

func gone(ctx context.Context, c *clients) error {
	api := c.typed.CoreV1().ConfigMaps(c.namespace)
	list, err := api.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if err := c.forget(ctx); err != nil {
		return err
	}
	watcher, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return expired(err)
	}
	defer watcher.Stop()
	select {
	case event := <-watcher.ResultChan():
		if event.Type != watch.Error {
			return fmt.Errorf("the first event is %s", event.Type)
		}
		return expired(apierrors.FromObject(event.Object))
	case <-time.After(5 * time.Second):
		return fmt.Errorf("no event")
	}
}

func goneList(ctx context.Context, c *clients) error {
	api := c.typed.CoreV1().ConfigMaps(c.namespace)
	options := metav1.ListOptions{LabelSelector: "check=pages", Limit: 10}
	page, err := api.List(ctx, options)
	if err != nil {
		return err
	}
	if err := c.forget(ctx); err != nil {
		return err
	}
	options.Continue = page.Continue
	_, err = api.List(ctx, options)
	if err := expired(err); err != nil {
		return err
	}
	// The refusal carries a token to go on with, at the price of a list that is of two times.
	options.Continue = err.(apierrors.APIStatus).Status().ListMeta.Continue
	rest, err := api.List(ctx, options)
	if err != nil {
		return err
	}
	if err := equal("the name after the first page", rest.Items[0].Name, "page-10"); err != nil {
		return err
	}
	// The pager of client-go lists everything at once instead.
	pages := 0
	paged := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if pages++; pages == 2 {
			if err := c.forget(ctx); err != nil {
				return nil, err
			}
		}
		return api.List(ctx, options)
	})
	paged.PageSize = 10
	all, _, err := paged.List(ctx, metav1.ListOptions{LabelSelector: "check=pages"})
	if err != nil {
		return err
	}
	return equal("the number of objects", len(all.(*corev1.ConfigMapList).Items), 26)
}

// relists gives a reflector a version that is gone, and expects it to begin anew.
func relists(ctx context.Context, c *clients) error {
	var lists, watches atomic.Int32
	api := c.typed.CoreV1().ConfigMaps(c.namespace)
	past, err := api.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if err := c.forget(ctx); err != nil {
		return err
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			lists.Add(1)
			return api.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if watches.Add(1) == 1 {
				options.ResourceVersion = past.ResourceVersion
			}
			return api.Watch(ctx, options)
		},
	}
	wrapped := cache.ToListWatcherWithWatchListSemantics(source, listsFirst{})
	informer := cache.NewSharedInformer(wrapped, &corev1.ConfigMap{}, 0)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go informer.RunWithContext(ctx)
	if err := eventually(ctx, "the second list", func() (bool, error) { return lists.Load() >= 2, nil }); err != nil {
		return err
	}
	if _, err := c.configMap(ctx, "after-relist", nil, "1"); err != nil {
		return err
	}
	return eventually(ctx, "the object in the cache", func() (bool, error) {
		_, exists, err := informer.GetStore().GetByKey(c.namespace + "/after-relist")
		return exists, err
	})
}

// listsFirst tells a reflector not to stream its first list.
type listsFirst struct{}

func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }
