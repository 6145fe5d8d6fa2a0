package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// printerColumns reads the column definitions of Tables from the source of the printers, by kind. The source is
// read rather than called, because the module it is in cannot be imported.
func printerColumns(path string) map[string][]metav1.TableColumnDefinition {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	check(err)
	p := printers{imports: map[string]string{}, types: map[string]reflect.Type{}}
	for _, spec := range file.Imports {
		imported := unquote(spec.Path)
		name := imported[strings.LastIndex(imported, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		p.imports[name] = imported
	}
	p.learn(reflect.TypeFor[metav1.ObjectMeta]())
	for _, goType := range scheme.Scheme.AllKnownTypes() {
		p.learn(goType)
	}
	kinds := map[string]string{}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Type.Params.NumFields() > 0 {
			if pointer, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr); ok {
				if named, ok := pointer.X.(*ast.SelectorExpr); ok {
					kinds[fn.Name.Name] = named.Sel.Name
				}
			}
		}
	}
	defined := map[string][]metav1.TableColumnDefinition{}
	columns := map[string][]metav1.TableColumnDefinition{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			name, ok := node.Lhs[0].(*ast.Ident)
			if !ok {
				return true
			}
			switch value := node.Rhs[0].(type) {
			case *ast.CompositeLit:
				if isColumns(value) {
					defined[name.Name] = p.columns(value)
				}
			case *ast.CallExpr:
				if len(value.Args) == 2 {
					if more, ok := value.Args[1].(*ast.CompositeLit); ok && isColumns(more) {
						defined[name.Name] = append(defined[name.Name], p.columns(more)...)
					}
				}
			}
		case *ast.CallExpr:
			if called, ok := node.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "TableHandler" {
				kind := kinds[node.Args[1].(*ast.Ident).Name]
				if !strings.HasSuffix(kind, "List") {
					columns[kind] = defined[node.Args[0].(*ast.Ident).Name]
				}
			}
		}
		return true
	})
	return columns
}

type printers struct {
	imports map[string]string
	types   map[string]reflect.Type
}

// learn notes a type and all it refers to by package and name.
func (p *printers) learn(goType reflect.Type) {
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		p.learn(goType.Elem())
	case reflect.Struct:
		key := goType.PkgPath() + "." + goType.Name()
		if p.types[key] != nil {
			return
		}
		p.types[key] = goType
		for field := range goType.Fields() {
			p.learn(field.Type)
		}
	}
}

func isColumns(literal *ast.CompositeLit) bool {
	array, ok := literal.Type.(*ast.ArrayType)
	if !ok {
		return false
	}
	element, ok := array.Elt.(*ast.SelectorExpr)
	return ok && element.Sel.Name == "TableColumnDefinition"
}

func (p *printers) columns(literal *ast.CompositeLit) []metav1.TableColumnDefinition {
	var all []metav1.TableColumnDefinition
	for _, element := range literal.Elts {
		var column metav1.TableColumnDefinition
		for _, field := range element.(*ast.CompositeLit).Elts {
			pair := field.(*ast.KeyValueExpr)
			switch name := pair.Key.(*ast.Ident).Name; name {
			case "Name":
				column.Name = unquote(pair.Value)
			case "Type":
				column.Type = unquote(pair.Value)
			case "Format":
				column.Format = unquote(pair.Value)
			case "Priority":
				priority, err := strconv.Atoi(pair.Value.(*ast.BasicLit).Value)
				check(err)
				column.Priority = int32(priority)
			case "Description":
				column.Description = p.description(pair.Value)
			default:
				log.Fatalf("unknown field %s of a column", name)
			}
		}
		all = append(all, column)
	}
	return all
}

// description is a text, or `package.Type{}.SwaggerDoc()["field"]`, possibly through a field of the type.
func (p *printers) description(value ast.Expr) string {
	if literal, ok := value.(*ast.BasicLit); ok {
		return unquote(literal)
	}
	index := value.(*ast.IndexExpr)
	owner := p.goType(index.X.(*ast.CallExpr).Fun.(*ast.SelectorExpr).X)
	doc := reflect.Zero(owner).Interface().(interface{ SwaggerDoc() map[string]string })
	return doc.SwaggerDoc()[unquote(index.Index)]
}

func (p *printers) goType(value ast.Expr) reflect.Type {
	switch value := value.(type) {
	case *ast.CompositeLit:
		named := value.Type.(*ast.SelectorExpr)
		name := p.imports[named.X.(*ast.Ident).Name] + "." + named.Sel.Name
		found := p.types[name]
		if found == nil {
			log.Fatalf("no Go type %s", name)
		}
		return found
	case *ast.SelectorExpr:
		field, ok := p.goType(value.X).FieldByName(value.Sel.Name)
		if !ok {
			log.Fatalf("no field %s", value.Sel.Name)
		}
		return field.Type
	}
	log.Fatalf("unknown expression %T", value)
	return nil
}

func unquote(value ast.Expr) string {
	text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
	check(err)
	return text
}
