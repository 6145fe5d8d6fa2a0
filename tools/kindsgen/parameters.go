package main

import (
	"path/filepath"
	"strings"
)

// parameterTexts are the descriptions of query parameters by name. Where an operation says something else, the
// name has a prefix: the kind of the options of a connection, `log`, or `patch`.
func parameterTexts(dir string, groups []Group) map[string]string {
	type parameter struct{ In, Name, Description string }
	texts := map[string]string{}
	add := func(prefix string, parameters []parameter) {
		for _, p := range parameters {
			if p.In == "query" {
				texts[prefix+p.Name] = p.Description
			}
		}
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			var document struct {
				Paths map[string]map[string]any
			}
			readJSON(filepath.Join(dir, documentName(group.Name, version.Name)), &document)
			for path, item := range document.Paths {
				if strings.Contains(path, "/watch/") {
					continue
				}
				var shared []parameter
				decode(item["parameters"], &shared)
				for method, value := range item {
					if method == "parameters" {
						continue
					}
					var operation struct {
						Parameters []parameter
						Action     string                `json:"x-kubernetes-action"`
						Kind       struct{ Kind string } `json:"x-kubernetes-group-version-kind"`
					}
					decode(value, &operation)
					prefix := ""
					switch {
					case operation.Action == "connect":
						prefix = operation.Kind.Kind + "/"
					case strings.HasSuffix(path, "/log"):
						prefix = "log/"
					case method == "patch":
						prefix = "patch/"
					}
					add(prefix, shared)
					add(prefix, operation.Parameters)
				}
			}
		}
	}
	for name, text := range texts {
		if _, plain, ok := strings.Cut(name, "/"); ok && texts[plain] == text {
			delete(texts, name)
		}
	}
	return texts
}
