package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// special are types whose JSON form is not that of their Go structure; the codec knows each by name.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                  "time",
	reflect.TypeFor[metav1.MicroTime]():                             "microtime",
	reflect.TypeFor[metav1.Duration]():                              "duration",
	reflect.TypeFor[metav1.FieldsV1]():                              "fields",
	reflect.TypeFor[resource.Quantity]():                            "quantity",
	reflect.TypeFor[intstr.IntOrString]():                           "intorstring",
	reflect.TypeFor[runtime.RawExtension]():                         "raw",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "json",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "propsorbool",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "propsorarray",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "propsorstrings",
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// table numbers Go types in the order they are met.
type table struct {
	ids   map[reflect.Type]int
	lines []string
}

func typeTable(groups []Group) []byte {
	check(apiextensionsv1.AddToScheme(scheme.Scheme))
	check(apiregistrationv1.AddToScheme(scheme.Scheme))
	check(admissionv1.AddToScheme(scheme.Scheme))
	check(apidiscoveryv2.AddToScheme(scheme.Scheme))
	t := &table{ids: map[reflect.Type]int{}}
	var kinds []string
	seen := map[schema.GroupVersionKind]bool{}
	add := func(gvk schema.GroupVersionKind, needed bool) {
		if seen[gvk] {
			return
		}
		goType, ok := scheme.Scheme.AllKnownTypes()[gvk]
		if !ok {
			if needed {
				log.Fatalf("no Go type for %s", gvk)
			}
			return
		}
		seen[gvk] = true
		kinds = append(kinds, fmt.Sprintf("K\t%s\t%s\t%s\t%d", gvk.Group, gvk.Version, gvk.Kind, t.id(goType)))
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				gvk := schema.GroupVersionKind{Group: group.Name, Version: version.Name, Kind: r.Kind}
				if r.Version != "" {
					gvk.Group, gvk.Version = r.Group, r.Version
				}
				add(gvk, true)
				gvk.Kind += "List"
				add(gvk, false)
			}
			for _, kind := range []string{"CreateOptions", "UpdateOptions", "PatchOptions", "DeleteOptions",
				"GetOptions", "ListOptions"} {
				if group.Name == "" {
					add(schema.GroupVersionKind{Version: "v1", Kind: kind}, true)
				}
			}
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Status"},
		{Version: "v1", Kind: "List"},
		{Version: "v1", Kind: "WatchEvent"},
		{Version: "v1", Kind: "APIGroup"},
		{Version: "v1", Kind: "APIGroupList"},
		{Version: "v1", Kind: "APIResourceList"},
		{Version: "v1", Kind: "APIVersions"},
		{Version: "v1", Kind: "RangeAllocation"},
		{Version: "v1", Kind: "SerializedReference"},
		{Version: "v1", Kind: "NodeProxyOptions"},
		{Group: "admission.k8s.io", Version: "v1", Kind: "AdmissionReview"},
		{Group: "apidiscovery.k8s.io", Version: "v2", Kind: "APIGroupDiscoveryList"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "ConversionReview"},
	} {
		add(gvk, true)
	}
	for _, extra := range []struct {
		kind   string
		goType reflect.Type
	}{
		{"PartialObjectMetadata", reflect.TypeFor[metav1.PartialObjectMetadata]()},
		{"PartialObjectMetadataList", reflect.TypeFor[metav1.PartialObjectMetadataList]()},
		{"Table", reflect.TypeFor[metav1.Table]()},
		{"TableOptions", reflect.TypeFor[metav1.TableOptions]()},
		{"LabelSelector", reflect.TypeFor[metav1.LabelSelector]()},
	} {
		kinds = append(kinds, fmt.Sprintf("K\tmeta.k8s.io\tv1\t%s\t%d", extra.kind, t.id(extra.goType)))
	}
	var out bytes.Buffer
	for _, line := range append(t.lines, kinds...) {
		out.WriteString(line)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// id gives the number of a type, and describes the type and all it refers to the first time.
func (t *table) id(goType reflect.Type) int {
	if id, ok := t.ids[goType]; ok {
		return id
	}
	id := len(t.ids)
	t.ids[goType] = id
	at := len(t.lines)
	t.lines = append(t.lines, "")
	line := func(code string, arguments ...any) {
		text := fmt.Sprintf("T\t%d\t%s\t%s\t%s", id, code, goType, modelName(goType))
		for _, argument := range arguments {
			text += fmt.Sprintf("\t%v", argument)
		}
		t.lines[at] = text
	}
	if code, ok := special[goType]; ok {
		switch code {
		case "propsorbool", "propsorarray", "propsorstrings":
			line(code, t.id(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()))
		default:
			line(code)
		}
		return id
	}
	if goType.Kind() != reflect.Pointer && reflect.PointerTo(goType).Implements(unmarshaler) {
		log.Fatalf("%s has its own JSON form that the codec does not know", goType)
	}
	switch goType.Kind() {
	case reflect.String:
		line("string")
	case reflect.Bool:
		line("bool")
	case reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Float64:
		line(goType.Kind().String())
	case reflect.Pointer:
		line("ptr", t.id(goType.Elem()))
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			line("bytes")
		} else {
			line("list", t.id(goType.Elem()))
		}
	case reflect.Map:
		if goType.Key().Kind() != reflect.String {
			log.Fatalf("%s has keys that are no strings", goType)
		}
		line("map", t.id(goType.Elem()))
	case reflect.Interface:
		line("any")
	case reflect.Struct:
		line("struct")
		fields := make([]string, 0, goType.NumField())
		for field := range goType.Fields() {
			if text, ok := t.field(field); ok {
				fields = append(fields, text)
			}
		}
		t.lines[at] += "\n" + strings.Join(fields, "\n")
		if len(fields) == 0 {
			t.lines[at] = strings.TrimSuffix(t.lines[at], "\n")
		}
	default:
		log.Fatalf("%s: unknown kind %s", goType, goType.Kind())
	}
	return id
}

// field describes a struct field: JSON name, flags (o omitempty, z omitzero, i inline), type and protobuf tag.
func (t *table) field(field reflect.StructField) (string, bool) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "-" || !field.IsExported() {
		return "", false
	}
	flags := ""
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			flags += "o"
		case "omitzero":
			flags += "z"
		case "inline", "":
		default:
			log.Fatalf("%s: unknown JSON option %q", field.Name, option)
		}
	}
	if field.Anonymous && name == "" {
		if field.Type.Kind() != reflect.Struct {
			log.Fatalf("%s: embedded pointers are not known", field.Name)
		}
		flags += "i"
		name = field.Name
	} else if name == "" {
		name = field.Name
	}
	return fmt.Sprintf("F\t%s\t%s\t%d\t%s", name, flags, t.id(field.Type), protobuf(field)), true
}

// protobuf is the field number and wire type, such as `1b` for bytes; empty for fields that have no tag.
func protobuf(field reflect.StructField) string {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return ""
	}
	return parts[1] + parts[0][:1]
}

// modelName is the name of a type in OpenAPI documents.
func modelName(goType reflect.Type) string {
	if goType.Name() == "" || goType.PkgPath() == "" {
		return ""
	}
	if named, ok := reflect.Zero(goType).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	if goType.Kind() != reflect.Struct {
		return ""
	}
	host, path, _ := strings.Cut(goType.PkgPath(), "/")
	parts := strings.Split(host, ".")
	reversed := make([]string, len(parts))
	for i, part := range parts {
		reversed[len(parts)-1-i] = part
	}
	return strings.Join(reversed, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + goType.Name()
}
