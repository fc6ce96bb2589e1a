package agentsandbox

import (
	"testing"

	"github.com/freshbind/freshbind/test/builders"
)

// A wrong hash would make it a member that nobody is ever given.
func TestAMemberThatNamesNoTemplateIsLeftAsItIs(t *testing.T) {
	member := builders.SandboxFrom(testMember).Unset("metadata", "annotations", templateRefAnnotation).UID("u").RV(7).Obj()
	want := `{"metadata":{"resourceVersion":"7","uid":"u"}}`
	for name, patch := range map[string][]byte{"hidden": HidePatch(member), "shown": ShowPatch(member)} {
		if string(patch) != want {
			t.Errorf("%s: %s, want %s", name, patch, want)
		}
	}
}
