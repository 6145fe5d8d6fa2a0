// Checks a Kubernetes API server with client-go: one line per check, and an exit code that says whether all went well.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
	patience     = 20 * time.Second
)

// clients speak to the server in one content type, in a namespace that nobody else uses.
type clients struct {
	config    *rest.Config
	typed     *kubernetes.Clientset
	dynamic   *dynamic.DynamicClient
	metadata  metadata.Interface
	namespace string
}

func connect(contentType, namespace string) (*clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 1000
	config.ContentType = contentType
	if contentType == protobufType {
		config.AcceptContentTypes = protobufType + "," + jsonType
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped := rest.CopyConfig(config)
	untyped.ContentType, untyped.AcceptContentTypes = jsonType, jsonType
	dynamicClient, err := dynamic.NewForConfig(untyped)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &clients{config, typed, dynamicClient, metadataClient, namespace}, nil
}

// check is one thing to hold, with a name to print.
type check struct {
	name string
	run  func(context.Context, *clients) error
}

// perContentType holds in JSON and in protobuf; once is checked in JSON only.
var perContentType = []check{
	{"typed informer sees adds, changes and deletions", typedInformer},
	{"informer streams its first list", streamedList},
	{"metadata informer", metadataInformer},
	{"pages of a list are one snapshot", pages},
	{"selectors", selectors},
	{"conflicts are retried", conflicts},
	{"server-side apply", serverSideApply},
	{"patches", patches},
	{"status and scale", subresources},
	{"deletion waits for finalizers", finalizers},
	{"errors are typed", typedErrors},
	{"watch sends bookmarks", bookmarks},
	{"leader election hands over", election},
}

var once = []check{
	{"discovery and the REST mapper", mapper},
	{"dynamic client and informer of a custom resource", customResources},
	{"events are recorded", recordedEvents},
	{"service account tokens are reviewed", tokens},
}

// afterLoss needs a server that keeps as many events as ORLOP_HISTORY says.
var afterLoss = []check{
	{"a watch from the past is told that it is gone", gone},
	{"pages of a past list go on from now", goneList},
	{"an informer begins anew", relists},
}

// history is how many events the server keeps; 0 when that is not known.
var history, _ = strconv.Atoi(os.Getenv("ORLOP_HISTORY"))

func main() {
	failed := false
	run := func(prefix, contentType, namespace string, checks []check) {
		c, err := connect(contentType, namespace)
		if err == nil {
			err = c.prepare(context.Background())
		}
		for _, check := range checks {
			why := err
			if why == nil {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				why = check.run(ctx, c)
				cancel()
			}
			if why != nil {
				failed = true
				fmt.Printf("FAIL %s%s: %v\n", prefix, check.name, why)
				continue
			}
			fmt.Printf("ok %s%s\n", prefix, check.name)
		}
	}
	run("json: ", jsonType, "go-json", perContentType)
	run("protobuf: ", protobufType, "go-protobuf", perContentType)
	run("", jsonType, "go-once", once)
	if history > 0 {
		run("json: ", jsonType, "go-json", afterLoss)
		run("protobuf: ", protobufType, "go-protobuf", afterLoss)
	}
	if failed {
		os.Exit(1)
	}
}
