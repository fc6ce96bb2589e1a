package routeserver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func asked(host, path string, headers ...string) request {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	return request{header: values(h), host: host, path: path}
}

func TestParseTarget(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		r    request
		want target
		// err is part of the error; "" for none.
		err string
	}{
		"agent-sandbox, name only": {asked("", "/", "X-Sandbox-ID", "one"), target{id: "default--one", port: 8888}, ""},
		"agent-sandbox, all": {
			asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-Namespace", "team-a", "X-Sandbox-Port", "80", "X-Sandbox-UID", "u"),
			target{id: "team-a--one", port: 80, uid: "u"}, "",
		},
		"an address by the client says nothing": {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-Pod-IP", "169.254.169.254"), target{id: "default--one", port: 8888}, ""},
		"name with a dot":                       {asked("", "/", "X-Sandbox-ID", "one.evil"), target{}, "X-Sandbox-Id: "},
		"name with a line break":                {asked("", "/", "X-Sandbox-ID", "one\r\nX-Evil: 1"), target{}, `"one\r\nX-Evil: 1"`},
		"name in capitals":                      {asked("", "/", "X-Sandbox-ID", "One"), target{}, "X-Sandbox-Id: "},
		"name too long":                         {asked("", "/", "X-Sandbox-ID", long), target{}, "X-Sandbox-Id: "},
		"namespace with a slash":                {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-Namespace", "a/b"), target{}, "X-Sandbox-Namespace: "},
		"UID too long":                          {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-UID", strings.Repeat("u", 129)), target{}, "X-Sandbox-Uid: "},
		"name twice":                            {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-ID", "two"), target{}, "more than once"},
		"name twice, joined":                    {asked("", "/", "X-Sandbox-ID", "one,two"), target{}, "X-Sandbox-Id: "},
		"port 0":                                {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-Port", "0"), target{}, "X-Sandbox-Port: "},
		"port too high":                         {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-Port", "65536"), target{}, "X-Sandbox-Port: "},
		"port with a sign":                      {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-Port", "+80"), target{}, "X-Sandbox-Port: "},
		"port with words":                       {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-Port", "80 evil"), target{}, "X-Sandbox-Port: "},
		"port twice":                            {asked("", "/", "X-Sandbox-ID", "one", "X-Sandbox-Port", "80", "X-Sandbox-Port", "81"), target{}, "more than once"},

		"OpenKruise, header":           {asked("", "/", "e2b-sandbox-id", "team-a--one"), target{id: "team-a--one", port: 49983}, ""},
		"OpenKruise, header and port":  {asked("", "/", "e2b-sandbox-id", "abc123", "e2b-sandbox-port", "3000"), target{id: "abc123", port: 3000}, ""},
		"OpenKruise, hostile ID":       {asked("", "/", "e2b-sandbox-id", "a/../b"), target{}, "E2b-Sandbox-Id: "},
		"OpenKruise, hostile port":     {asked("", "/", "e2b-sandbox-id", "a", "e2b-sandbox-port", "1e3"), target{}, "E2b-Sandbox-Port: "},
		"OpenKruise, host":             {asked("3000-team-a--one.example.com:8443", "/"), target{id: "team-a--one", port: 3000}, ""},
		"OpenKruise, host in capitals": {asked("3000-TEAM-A--One.Example.com", "/"), target{id: "team-a--one", port: 3000}, ""},
		"host without a domain":        {asked("3000-team-a--one", "/"), target{}, "names no sandbox"},
		"host without a port":          {asked("team-a--one.example.com", "/"), target{}, "names no sandbox"},
		"host with a hostile ID":       {asked("3000-a_b.example.com", "/"), target{}, "Host: "},
		"host too long":                {asked("3000-a."+strings.Repeat("b", 255), "/"), target{}, "names no sandbox"},
		"host is an address":           {asked("[fd00::1]:80", "/"), target{}, "names no sandbox"},

		"path":                      {asked("", "/kruise/team-a--one/3000/a/b?c=d"), target{id: "team-a--one", port: 3000, path: "/a/b?c=d"}, ""},
		"path, nothing behind":      {asked("", "/kruise/one/3000"), target{id: "one", port: 3000, path: "/"}, ""},
		"path, only a query behind": {asked("", "/kruise/one/3000?a"), target{id: "one", port: 3000, path: "/?a"}, ""},
		"path without a port":       {asked("", "/kruise/one"), target{}, "port from 1 to 65535"},
		"path without an ID":        {asked("", "/kruise//80/"), target{}, "path: "},
		"path that leads away":      {asked("", "/kruise/one/80/../../two/80/"), target{}, "without . and .."},
		"path that leads away, %":   {asked("", "/kruise/one/80/%2e%2E%2f%2e./two/80/"), target{}, "without . and .."},
		"dots in the query":         {asked("", "/kruise/one/80/?a=/../"), target{id: "one", port: 80, path: "/?a=/../"}, ""},
		"path with a line break":    {asked("", "/kruise/one/80/\r\nX-Evil:1"), target{}, "printable"},
		"path too long":             {asked("", "/kruise/one/80/"+strings.Repeat("a", maxPath)), target{}, "printable"},
		"the gateway's own API":     {asked("", "/kruise/api/v1"), target{}, "names no sandbox"},
		"a path like it":            {asked("", "/kruisexy/one/80"), target{}, "names no sandbox"},

		"both headers":           {asked("", "/", "X-Sandbox-ID", "one", "e2b-sandbox-id", "two"), target{}, "more than one way"},
		"header and path":        {asked("", "/kruise/two/80/", "X-Sandbox-ID", "one"), target{}, "more than one way"},
		"other header and path":  {asked("", "/kruise/two/80/", "e2b-sandbox-id", "one"), target{}, "more than one way"},
		"header before the host": {asked("80-two.example.com", "/", "e2b-sandbox-id", "one"), target{id: "one", port: 49983}, ""},
		"nothing":                {asked("", ""), target{}, "names no sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTarget(tc.r)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if err == nil {
				if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(target{})); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func FuzzParseTarget(f *testing.F) {
	f.Add("one", "team-a", "80", "u", "", "", "", "/")
	f.Add("", "", "", "", "team-a--one", "3000", "", "/")
	f.Add("", "", "", "", "", "", "3000-team-a--one.example.com", "/")
	f.Add("", "", "", "", "", "", "", "/kruise/team-a--one/3000/a?b=../c")
	f.Add("", "", "", "", "", "", "", "/kruise/a/1/%2e%2e/")
	f.Fuzz(func(t *testing.T, id, namespace, port, uid, e2b, e2bPort, host, path string) {
		r := asked(host, path, "X-Sandbox-ID", id, "X-Sandbox-Namespace", namespace, "X-Sandbox-Port", port, "X-Sandbox-UID", uid, "e2b-sandbox-id", e2b, "e2b-sandbox-port", e2bPort)
		got, err := parseTarget(r)
		if err != nil {
			if !isPrintable(strings.ReplaceAll(err.Error(), " ", "")) {
				t.Errorf("the error repeats what it must not: %q", err)
			}
			return
		}
		if !isID(got.id) || got.port == 0 || len(got.uid) > maxUID || len(got.path) > maxPath {
			t.Errorf("%+v", got)
		}
		if got.path != "" && (got.path[0] != '/' || !isPrintable(got.path) || !strings.HasSuffix(path, strings.TrimPrefix(got.path, "/"))) {
			t.Errorf("path %q of %q", got.path, path)
		}
		if id != "" && (e2b != "" || strings.HasPrefix(path, "/kruise/") && !strings.HasPrefix(path, "/kruise/api/")) {
			t.Errorf("%+v from a request that names two", got)
		}
	})
}
