package main

import (
	"path/filepath"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is an API group as a server with default settings offers it; the legacy group has no name.
type Group struct {
	Name     string    `json:"name"`
	Versions []Version `json:"versions"`
}

// Version is one version of a group, the preferred one first.
type Version struct {
	Name      string               `json:"name"`
	Resources []metav1.APIResource `json:"resources"`
}

// Only stable versions are served unless an operator asks for more.
var stable = regexp.MustCompile(`^v[0-9]+$`)

// hidden are resources that stable versions have only behind feature gates that are off by default.
var hidden = map[string]bool{}

func readDiscovery(dir string) []Group {
	groups := []Group{{Versions: []Version{{Name: "v1", Resources: readResources(dir, "api__v1.json")}}}}
	var list metav1.APIGroupList
	readJSON(filepath.Join(dir, "apis.json"), &list)
	for _, group := range list.Groups {
		served := Group{Name: group.Name}
		for _, version := range group.Versions {
			if stable.MatchString(version.Version) {
				file := "apis__" + group.Name + "__" + version.Version + ".json"
				served.Versions = append(served.Versions,
					Version{Name: version.Version, Resources: readResources(dir, file)})
			}
		}
		if len(served.Versions) > 0 {
			groups = append(groups, served)
		}
	}
	return groups
}

func readResources(dir, file string) []metav1.APIResource {
	var list metav1.APIResourceList
	readJSON(filepath.Join(dir, file), &list)
	resources := []metav1.APIResource{}
	for _, resource := range list.APIResources {
		if !hidden[list.GroupVersion+"/"+resource.Name] {
			resources = append(resources, resource)
		}
	}
	return resources
}
