package main

import (
	"os"
	"testing"
)

// Both models with all that they know of, as make test-rest asks for it. The go command
// remembers the result for as long as nothing changes that the models are made of.
func TestAllOfBothModels(t *testing.T) {
	if os.Getenv("FRESHBIND_MODEL") != "whole" {
		t.Skip("NOT CHECKED: all states of both models (make test-rest does; or FRESHBIND_MODEL=whole)")
	}
	for name, run := range map[string]func() error{"binds": binds, "rollouts": rollouts} {
		t.Run(name, func(t *testing.T) {
			if err := run(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
