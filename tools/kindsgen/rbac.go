package main

import (
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Policy is what a new cluster's RBAC consists of, in the order it is created.
type Policy struct {
	ClusterRoles        []any `json:"clusterRoles"`
	ClusterRoleBindings []any `json:"clusterRoleBindings"`
	Roles               []any `json:"roles"`
	RoleBindings        []any `json:"roleBindings"`
}

func bootstrapPolicy(dir string) Policy {
	read := func(names ...string) []any {
		var all []any
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(dir, name))
			check(err)
			var list struct{ Items []any }
			check(yaml.Unmarshal(data, &list))
			all = append(all, list.Items...)
		}
		return all
	}
	return Policy{
		ClusterRoles:        read("cluster-roles.yaml", "controller-roles.yaml"),
		ClusterRoleBindings: read("cluster-role-bindings.yaml", "controller-role-bindings.yaml"),
		Roles:               read("namespace-roles.yaml"),
		RoleBindings:        read("namespace-role-bindings.yaml"),
	}
}
