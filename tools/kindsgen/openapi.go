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

// openAPI packs the definitions that the served group-versions use, and their descriptions apart from them:
// most readers need the structure only. A definition's own description has the key "".
func openAPI(dir, generated string, groups []Group) (schemas, descriptions []byte) {
	definitions := map[string]any{}
	for _, group := range groups {
		for _, version := range group.Versions {
			collect(filepath.Join(dir, documentName(group.Name, version.Name)), definitions)
		}
	}
	for _, file := range []string{"api_openapi.json", "apis_openapi.json", "version_openapi.json"} {
		collect(filepath.Join(dir, file), definitions)
	}
	addEnums(generated, definitions)
	texts := map[string]any{}
	for name, definition := range definitions {
		texts[name] = takeDescriptions(definition.(map[string]any))
	}
	return pack(definitions), pack(texts)
}

// pack writes one compressed block per Go package, so that a server unpacks only the packages it is asked
// about. The first line is the index: package, offset and length of each block. A block has a line
// `name TAB JSON` per definition.
func pack(definitions map[string]any) []byte {
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

// documentName is the file of a group-version's document.
func documentName(group, version string) string {
	if group == "" {
		return "api__" + version + "_openapi.json"
	}
	return "apis__" + group + "__" + version + "_openapi.json"
}

func collect(path string, into map[string]any) {
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	readJSON(path, &document)
	for name, schema := range document.Components.Schemas {
		firstGroupOnly(schema)
		if before, ok := into[name]; ok && !bytes.Equal(encode(before), encode(schema)) {
			check(fmt.Errorf("%s differs between documents", name))
		}
		into[name] = schema
	}
}

// takeDescriptions moves the descriptions of a definition and its properties out of it; there are no others.
func takeDescriptions(definition map[string]any) map[string]any {
	texts := map[string]any{}
	take := func(key string, schema map[string]any) {
		if text, ok := schema["description"].(string); ok {
			texts[key] = text
			delete(schema, "description")
		}
	}
	take("", definition)
	properties, _ := definition["properties"].(map[string]any)
	for name, property := range properties {
		take(name, property.(map[string]any))
	}
	return texts
}

// firstGroupOnly drops what depends on the document: option kinds belong to every group.
func firstGroupOnly(schema any) {
	const key = "x-kubernetes-group-version-kind"
	object := schema.(map[string]any)
	if kinds, ok := object[key].([]any); ok && len(kinds) > 1 {
		object[key] = kinds[:1]
	}
}
