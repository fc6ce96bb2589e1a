package release

import "testing"

func TestWhatIsOurs(t *testing.T) {
	known := ours([]string{"", "-kruise"})
	for name, want := range map[string]bool{
		"freshbind": true, "freshbind-by-floor-0": true, "freshbind-used-by-pool": true, "freshbind-own-writes": true, "freshbind-pools": true, "freshbind-pools-kruise": true,
		"freshbind-kruise": true, "freshbind-kruise-by-floor-12": true, "freshbind-used-kruise-by-pool": true, "freshbind-own-members-kruise": true,
		"freshbind-kruise-used": false, "freshbind-other": false, "freshbind-kruise-2": false, "kruise": false, "my-freshbind-kruise": false,
	} {
		if got := known.MatchString(name); got != want {
			t.Errorf("%s is ours: %t, want %t", name, got, want)
		}
	}
}
