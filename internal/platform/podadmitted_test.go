package platform

import "testing"

func TestIsExtended(t *testing.T) {
	for resource, want := range map[string]bool{
		"cpu": false, "example.com/gpu": true, "kubernetes.io/x": false, "a.kubernetes.io/x": false,
		"requests.example.com/gpu": false, "hugepages-2Mi": false, "notkubernetes.io/x": true,
	} {
		if got := isExtended(resource); got != want {
			t.Errorf("isExtended(%q) = %t, want %t", resource, got, want)
		}
	}
}
