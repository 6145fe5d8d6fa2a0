package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"strings"
)

// addEnums adds the values that strings may have, and what is said about them, which a server publishes but the
// documents of the module leave out. They are read from the generated source of the server's definitions.
func addEnums(path string, definitions map[string]any) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	check(err)
	functions := map[string]*ast.FuncDecl{}
	for _, decl := range file.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			functions[function.Name.Name] = function
		}
	}
	for name, definition := range definitions {
		function := functions[schemaFunction(name)]
		properties, _ := definition.(map[string]any)["properties"].(map[string]any)
		if function == nil || properties == nil {
			continue
		}
		ast.Inspect(function, func(node ast.Node) bool {
			field, ok := node.(*ast.KeyValueExpr)
			if !ok || !isIdent(field.Key, "Properties") {
				return true
			}
			for _, element := range field.Value.(*ast.CompositeLit).Elts {
				entry := element.(*ast.KeyValueExpr)
				property, ok := properties[unquote(entry.Key.(*ast.BasicLit))].(map[string]any)
				if !ok {
					log.Fatalf("%s has no %v", name, entry.Key)
				}
				addEnum(entry.Value, property)
			}
			return false
		})
	}
}

// addEnum adds the values of one property, or of the items in it.
func addEnum(source ast.Node, schema map[string]any) {
	var description string
	ast.Inspect(source, func(node ast.Node) bool {
		field, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		switch {
		case isIdent(field.Key, "Description"):
			if text, ok := field.Value.(*ast.BasicLit); ok {
				description = unquote(text)
			}
		case isIdent(field.Key, "Items"):
			if items, ok := schema["items"].(map[string]any); ok {
				addEnum(field.Value, items)
			}
			// What is said about the values stands before them.
			if strings.Contains(description, "Possible enum values") {
				schema["description"] = description
			}
			return false
		case isIdent(field.Key, "AdditionalProperties"):
			if values, ok := schema["additionalProperties"].(map[string]any); ok {
				addEnum(field.Value, values)
			}
			return false
		case isIdent(field.Key, "Enum"):
			values := []any{}
			for _, value := range field.Value.(*ast.CompositeLit).Elts {
				values = append(values, unquote(value.(*ast.BasicLit)))
			}
			schema["enum"] = values
			if description != "" {
				schema["description"] = description
			}
		}
		return true
	})
}

// schemaFunction is the function that makes a definition.
func schemaFunction(name string) string {
	if of, ok := strings.CutPrefix(name, "io.k8s.api."); ok {
		return "schema_k8sio_api_" + strings.ReplaceAll(of, ".", "_")
	}
	_, of, _ := strings.Cut(name, ".pkg.")
	return "schema_pkg_" + strings.ReplaceAll(of, ".", "_")
}

func isIdent(expression ast.Expr, name string) bool {
	ident, ok := expression.(*ast.Ident)
	return ok && ident.Name == name
}
