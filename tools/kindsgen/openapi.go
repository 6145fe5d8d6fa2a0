package main

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

const refPrefix = "#/components/schemas/"

// openAPI packs the definitions that the served group-versions use, one compressed block per Go package, so
// that a server unpacks only the packages it is asked about. The first line is the index: package, offset
// and length of each block. A block has a line `name TAB schema` per definition.
func openAPI(dir string, groups []Group) []byte {
	definitions := map[string]any{}
	for _, group := range groups {
		for _, version := range group.Versions {
			file := "apis__" + group.Name + "__" + version.Name + "_openapi.json"
			if group.Name == "" {
				file = "api__" + version.Name + "_openapi.json"
			}
			collect(filepath.Join(dir, file), definitions)
		}
	}
	for _, file := range []string{"api_openapi.json", "apis_openapi.json", "version_openapi.json"} {
		collect(filepath.Join(dir, file), definitions)
	}
	packages := map[string]*bytes.Buffer{}
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		pkg := name[:strings.LastIndex(name, ".")]
		if packages[pkg] == nil {
			packages[pkg] = &bytes.Buffer{}
		}
		fmt.Fprintf(packages[pkg], "%s\t%s\n", name, encode(definitions[name]))
	}
	index := [][]any{}
	var blocks bytes.Buffer
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		block := compress(packages[pkg].Bytes())
		index = append(index, []any{pkg, blocks.Len(), len(block)})
		blocks.Write(block)
	}
	return append(append(encode(index), '\n'), blocks.Bytes()...)
}

func collect(path string, into map[string]any) {
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	readJSON(path, &document)
	for name, schema := range document.Components.Schemas {
		strip(schema, false)
		firstGroupOnly(schema)
		if before, ok := into[name]; ok && !bytes.Equal(encode(before), encode(schema)) {
			check(fmt.Errorf("%s differs between documents", name))
		}
		into[name] = schema
	}
}

// strip removes descriptions, but not properties that are called so.
func strip(schema any, properties bool) {
	switch node := schema.(type) {
	case map[string]any:
		if _, text := node["description"].(string); text && !properties {
			delete(node, "description")
		}
		for key, child := range node {
			strip(child, key == "properties" && !properties)
		}
	case []any:
		for _, child := range node {
			strip(child, false)
		}
	}
}

// firstGroupOnly drops what depends on the document: option kinds belong to every group.
func firstGroupOnly(schema any) {
	const key = "x-kubernetes-group-version-kind"
	object := schema.(map[string]any)
	if kinds, ok := object[key].([]any); ok && len(kinds) > 1 {
		object[key] = kinds[:1]
	}
}
