// Command kindsgen writes the data files of crate orlop-kinds: the Go structure of the built-in kinds, their
// OpenAPI definitions, discovery, the bootstrap RBAC policy and the columns of Tables. It reads the published Kubernetes modules
// only, and the same modules always give the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

const release = "k8s.io/kubernetes@v1.36.3"

func main() {
	log.SetFlags(0)
	out := flag.String("out", "../../crates/orlop-kinds/data", "directory the data files are written to")
	source := flag.String("source", "", "directory of the k8s.io/kubernetes module (default: ask the go command)")
	flag.Parse()
	if *source == "" {
		*source = moduleDir()
	}
	known := knownVersions(filepath.Join(*source, "api/openapi-spec/swagger.json"))
	groups := readDiscovery(filepath.Join(*source, "api/discovery"))
	schemas, descriptions := openAPI(filepath.Join(*source, "api/openapi-spec/v3"),
		filepath.Join(*source, "pkg/generated/openapi/zz_generated.openapi.go"), groups)
	for _, file := range []struct {
		name string
		data []byte
	}{
		{"discovery.json.gz", compress(encode(groups))},
		{"types.tsv.gz", compress(typeTable(groups))},
		{"openapi.bin", schemas},
		{"descriptions.bin", descriptions},
		{"rbac.json.gz", compress(encode(bootstrapPolicy(filepath.Join(*source,
			"plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"))))},
		{"versions.json", append(encode(known), '\n')},
		{"parameters.json.gz", compress(encode(parameterTexts(filepath.Join(*source, "api/openapi-spec/v3"), groups)))},
		{"columns.json.gz", compress(encode(printerColumns(filepath.Join(*source,
			"pkg/printers/internalversion/printers.go"))))},
	} {
		check(os.WriteFile(filepath.Join(*out, file.name), file.data, 0o644))
		fmt.Printf("%-20s %7d bytes\n", file.name, len(file.data))
	}
}

// moduleDir asks the go command for the unpacked module of the release.
func moduleDir() string {
	cmd := exec.Command("go", "mod", "download", "-json", release)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	check(err)
	var module struct{ Dir string }
	check(json.Unmarshal(output, &module))
	return module.Dir
}

func compress(data []byte) []byte {
	var buffer bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	check(err)
	_, err = writer.Write(data)
	check(err)
	check(writer.Close())
	return buffer.Bytes()
}

func encode(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(value))
	return bytes.TrimSpace(buffer.Bytes())
}

func readJSON(path string, into any) {
	data, err := os.ReadFile(path)
	check(err)
	check(json.Unmarshal(data, into))
}

// decode reads a value that was decoded into something more exact.
func decode(value any, into any) {
	check(json.Unmarshal(encode(value), into))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
