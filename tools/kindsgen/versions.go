package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// known are the group-versions that the original names as homes of the kinds that every group has.
type known struct {
	// Clients are those that the Go client knows.
	Clients []schema.GroupVersion `json:"clients"`
	// Server are those that a server knows besides.
	Server []schema.GroupVersion `json:"server"`
}

// knownVersions must be asked before other groups are added to the scheme.
func knownVersions(path string) known {
	var document struct {
		Definitions map[string]struct {
			Kinds []schema.GroupVersion `json:"x-kubernetes-group-version-kind"`
		}
	}
	readJSON(path, &document)
	all := known{Clients: []schema.GroupVersion{}, Server: []schema.GroupVersion{}}
	for _, gv := range document.Definitions["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"].Kinds {
		if scheme.Scheme.IsVersionRegistered(gv) {
			all.Clients = append(all.Clients, gv)
		} else {
			all.Server = append(all.Server, gv)
		}
	}
	return all
}
