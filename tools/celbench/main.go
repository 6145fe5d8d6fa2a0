// Command celbench measures how long the Kubernetes original takes to compile the CEL rules of custom resource
// definitions and to judge objects by them. The same directory and file go to the Rust bench:
//
//	go run . -crds DIR -objects FILE -rounds N
//
// DIR holds definitions as YAML files, FILE a JSON list of {"kind", "sent"}. Output: one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

type kind struct {
	schema    *schema.Structural
	validator *cel.Validator
}

type object struct {
	kind string
	data map[string]interface{}
}

func main() {
	crds := flag.String("crds", "", "directory of definitions")
	objects := flag.String("objects", "", "file of objects")
	rounds := flag.Int("rounds", 20, "how often each is measured")
	flag.Parse()
	if err := run(*crds, *objects, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(crds, objects string, rounds int) error {
	kinds, err := readKinds(crds)
	if err != nil {
		return err
	}
	all, err := readObjects(objects, kinds)
	if err != nil {
		return err
	}
	for name := range kinds {
		if !used(name, all) {
			delete(kinds, name)
		}
	}
	rules := 0
	for _, k := range kinds {
		rules += count(k.schema)
	}
	compile := make([]float64, 0, rounds)
	for range rounds {
		start := time.Now()
		for _, k := range kinds {
			k.validator = cel.NewValidator(k.schema, true, celconfig.PerCallLimit)
		}
		compile = append(compile, float64(time.Since(start).Microseconds()))
	}
	refused := 0
	evaluate := make([]float64, 0, rounds)
	for range rounds {
		refused = 0
		start := time.Now()
		for _, o := range all {
			k := kinds[o.kind]
			errs, _ := k.validator.Validate(context.Background(), nil, k.schema, o.data, nil, celconfig.RuntimeCELCostBudget)
			if len(errs) > 0 {
				refused++
			}
		}
		evaluate = append(evaluate, float64(time.Since(start).Microseconds()))
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"rules": rules, "objects": len(all), "refused": refused,
		"compile_us": median(compile), "evaluate_us": median(evaluate),
	})
}

func used(name string, all []object) bool {
	for _, o := range all {
		if o.kind == name {
			return true
		}
	}
	return false
}

func median(of []float64) float64 {
	sort.Float64s(of)
	return of[len(of)/2]
}

func count(s *schema.Structural) int {
	if s == nil {
		return 0
	}
	n := len(s.XValidations) + count(s.Items)
	if s.AdditionalProperties != nil {
		n += count(s.AdditionalProperties.Structural)
	}
	for _, p := range s.Properties {
		n += count(&p)
	}
	return n
}

func readKinds(directory string) (map[string]*kind, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return nil, err
	}
	kinds := map[string]*kind{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd v1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil || crd.Kind != "CustomResourceDefinition" {
			continue
		}
		for _, version := range crd.Spec.Versions {
			if version.Name != "v1" {
				continue
			}
			var internal apiextensions.JSONSchemaProps
			if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				return nil, err
			}
			structural, err := schema.NewStructural(&internal)
			if err != nil {
				return nil, err
			}
			kinds[crd.Spec.Names.Kind] = &kind{schema: structural}
		}
	}
	return kinds, nil
}

func readObjects(file string, kinds map[string]*kind) ([]object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Kind string
		Sent map[string]interface{}
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, err
	}
	var all []object
	for _, row := range rows {
		k, ok := kinds[row.Kind]
		if !ok {
			return nil, fmt.Errorf("no definition of %s", row.Kind)
		}
		// The server reads whole numbers as integers, and defaults before it judges.
		data, _ := whole(row.Sent).(map[string]interface{})
		defaulting.Default(data, k.schema)
		all = append(all, object{row.Kind, data})
	}
	return all, nil
}

func whole(value interface{}) interface{} {
	switch value := value.(type) {
	case map[string]interface{}:
		for k, v := range value {
			value[k] = whole(v)
		}
	case []interface{}:
		for i, v := range value {
			value[i] = whole(v)
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}
