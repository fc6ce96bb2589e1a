package routeserver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/freshbind/freshbind/routes"
)

// The headers that name a sandbox. agent-sandbox's router reads the first ones,
// OpenKruise's gateway the last two.
const (
	headerID        = "X-Sandbox-Id"
	headerUID       = "X-Sandbox-Uid"
	headerNamespace = "X-Sandbox-Namespace"
	headerPort      = "X-Sandbox-Port"
	headerE2BID     = "E2b-Sandbox-Id"
	headerE2BPort   = "E2b-Sandbox-Port"
)

const (
	// Defaults of agent-sandbox's router and of OpenKruise's gateway.
	defaultNamespace = "default"
	defaultPort      = 8888
	defaultE2BPort   = 49983

	kruisePrefix = "/kruise/"

	maxLabel = 63
	// maxID is a namespace, the separator and the longest name.
	maxID   = maxLabel + 2 + 253
	maxUID  = 128
	maxHost = 255
	// maxPath bounds what is handed on in a header.
	maxPath = 8 << 10
	// quoted bounds what of a request is repeated in an error.
	quoted = 64
)

// request is what a gateway tells of a request that it has.
type request struct {
	// header returns all values of a header, named in canonical form.
	header     func(name string) []string
	host, path string
}

// target is the sandbox that a request is for.
type target struct {
	id string
	// uid is what the client takes the sandbox's UID for; "" when it does not say.
	uid  string
	port uint16
	// path replaces the request's, which named the sandbox; "" to leave it.
	path string
}

var (
	errNoTarget  = errors.New("the request names no sandbox: set X-Sandbox-ID or e2b-sandbox-id, or use a host like 8080-team--name.example.com or a path like /kruise/team--name/8080/")
	errAmbiguous = errors.New("the request names a sandbox in more than one way: use one of X-Sandbox-ID, e2b-sandbox-id and the path /kruise/")
)

// parseTarget reads which sandbox a request is for. A request that could be read
// in two ways is refused: a gateway could have checked the other one.
func parseTarget(r request) (target, error) {
	id, errID := single(r.header, headerID)
	e2b, errE2B := single(r.header, headerE2BID)
	if err := errors.Join(errID, errE2B); err != nil {
		return target{}, err
	}
	byPath := strings.HasPrefix(r.path, kruisePrefix) && !strings.HasPrefix(r.path, kruisePrefix+"api/")
	switch {
	case id != "" && (e2b != "" || byPath) || e2b != "" && byPath:
		return target{}, errAmbiguous
	case id != "":
		return byRouterHeaders(r, id)
	case e2b != "":
		return byE2BHeaders(r, e2b)
	case byPath:
		return parsePath(r.path)
	}
	return parseHost(r.host)
}

// byRouterHeaders reads what agent-sandbox's router reads. The address that its
// clients may send is of no interest: where a sandbox is, the table knows.
func byRouterHeaders(r request, id string) (target, error) {
	namespace, errNamespace := single(r.header, headerNamespace)
	uid, errUID := single(r.header, headerUID)
	port, errPort := portHeader(r.header, headerPort, defaultPort)
	if err := errors.Join(errNamespace, errUID, errPort); err != nil {
		return target{}, err
	}
	if namespace == "" {
		namespace = defaultNamespace
	}
	switch {
	case !isLabel(id):
		return target{}, invalid(headerID, id, "the name of a Sandbox")
	case !isLabel(namespace):
		return target{}, invalid(headerNamespace, namespace, "the name of a namespace")
	case len(uid) > maxUID:
		return target{}, invalid(headerUID, uid, "the UID of a Sandbox")
	}
	return target{id: routes.DefaultID(namespace, id), uid: uid, port: port}, nil
}

func byE2BHeaders(r request, id string) (target, error) {
	port, err := portHeader(r.header, headerE2BPort, defaultE2BPort)
	if err != nil {
		return target{}, err
	}
	if !isID(id) {
		return target{}, invalid(headerE2BID, id, "the ID of a sandbox")
	}
	return target{id: id, port: port}, nil
}

// parsePath reads /kruise/ID/PORT/REST.
func parsePath(path string) (target, error) {
	if len(path) > maxPath || !isPrintable(path) {
		return target{}, invalid("path", path, "a path of printable characters")
	}
	before, query, asked := strings.Cut(path[len(kruisePrefix):], "?")
	id, rest, _ := strings.Cut(before, "/")
	number, rest, _ := strings.Cut(rest, "/")
	port, ok := parsePort(number)
	switch {
	case !isID(id):
		return target{}, invalid("path", path, "/kruise/ID/PORT/ with the ID of a sandbox")
	case !ok:
		return target{}, invalid("path", path, "/kruise/ID/PORT/ with a port from 1 to 65535")
	case hasDotSegment(rest):
		// Whoever resolves it reads another sandbox in it.
		return target{}, invalid("path", path, "a path without . and .. in it")
	}
	t := target{id: id, port: port, path: "/" + rest}
	if asked {
		t.path += "?" + query
	}
	return t, nil
}

// parseHost reads PORT-ID.DOMAIN.
func parseHost(host string) (target, error) {
	number, rest, _ := strings.Cut(host, "-")
	id, _, found := strings.Cut(rest, ".")
	port, ok := parsePort(number)
	if len(host) > maxHost || !found || !ok {
		return target{}, errNoTarget
	}
	if id = strings.ToLower(id); !isID(id) {
		return target{}, invalid("Host", host, "PORT-ID.DOMAIN with the ID of a sandbox")
	}
	return target{id: id, port: port}, nil
}

func single(header func(string) []string, name string) (string, error) {
	switch values := header(name); len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", fmt.Errorf("%s is there more than once: send it once", name)
}

func portHeader(header func(string) []string, name string, or uint16) (uint16, error) {
	text, err := single(header, name)
	if err != nil || text == "" {
		return or, err
	}
	port, ok := parsePort(text)
	if !ok {
		return 0, invalid(name, text, "a port from 1 to 65535")
	}
	return port, nil
}

func parsePort(s string) (uint16, bool) {
	if s == "" || len(s) > 5 || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil
}

func invalid(field, value, want string) error {
	if len(value) > quoted {
		value = value[:quoted]
	}
	return fmt.Errorf("%s: %s is not %s", field, strconv.QuoteToASCII(value), want)
}

func isLabel(s string) bool { return len(s) <= maxLabel && isName(s, false) }

// isID accepts whatever namespaces and names of Kubernetes make, and nothing that
// means anything in a header, a host or a path.
func isID(s string) bool { return len(s) <= maxID && isName(s, true) }

func isName(s string, dots bool) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case (c == '-' || c == '.' && dots) && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != ""
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// hasDotSegment reports whether a part of a path is . or .., in any spelling.
func hasDotSegment(path string) bool {
	path = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", `\`, "/").Replace(path)
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}
