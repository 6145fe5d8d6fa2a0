package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// prepare makes the namespace.
func (c *clients) prepare(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	_, err := c.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// configMap creates a ConfigMap with one key.
func (c *clients) configMap(ctx context.Context, name string, labels map[string]string, value string) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Data:       map[string]string{"key": value},
	}
	return c.typed.CoreV1().ConfigMaps(c.namespace).Create(ctx, object, metav1.CreateOptions{})
}

// seen collects what an informer reports, as lines.
type seen chan string

func (s seen) handler(describe func(any) string) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s <- "added " + describe(object) },
		UpdateFunc: func(_, object any) { s <- "updated " + describe(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			s <- "deleted " + describe(object)
		},
	}
}

// next is what must be reported next.
func (s seen) next(ctx context.Context, expected string) error {
	select {
	case got := <-s:
		return equal("the next event", got, expected)
	case <-ctx.Done():
		return fmt.Errorf("no event; expected %q", expected)
	}
}

func equal[T comparable](what string, got, expected T) error {
	if got != expected {
		return fmt.Errorf("%s is %v, expected %v", what, got, expected)
	}
	return nil
}

// eventually repeats until something holds.
func eventually(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: not in time", what)
		}
	}
}

// first gives the first error there is.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
