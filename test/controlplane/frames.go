package controlplane

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// framing cuts the next event, with whatever delimits it, off a watch response.
// At the end it returns what is left and an error.
type framing func(*bufio.Reader) ([]byte, error)

// framingOf is the framing of a watch response by its content type.
// k8s.io/apimachinery/pkg/runtime/serializer knows the same ones.
func framingOf(contentType string) (framing, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("content type %q: %w", contentType, err)
	}
	switch media {
	case "application/json":
		return func(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }, nil
	case "application/vnd.kubernetes.protobuf":
		return lengthDelimited(0), nil
	}
	return nil, fmt.Errorf("content type %q: frames of it are not known here", contentType)
}

// maxFrame in bytes is far above the size of any object that etcd stores.
const maxFrame = 64 << 20

// grpcFlags is how many bytes of a gRPC message are before its length
// (PROTOCOL-HTTP2.md of grpc: whether it is compressed).
const grpcFlags = 1

// lengthDelimited reads a frame that begins with some bytes of flags and its
// length in 4 bytes, big endian.
func lengthDelimited(flags int) framing {
	return func(r *bufio.Reader) ([]byte, error) {
		head := make([]byte, flags+4)
		if n, err := io.ReadFull(r, head); err != nil {
			return head[:n], endOfStream(err)
		}
		size := binary.BigEndian.Uint32(head[flags:])
		if size > maxFrame {
			return head, fmt.Errorf("frame of %d bytes: more than %d", size, maxFrame)
		}
		frame := make([]byte, len(head)+int(size))
		copy(frame, head)
		n, err := io.ReadFull(r, frame[len(head):])
		return frame[:len(head)+n], endOfStream(err)
	}
}

// endOfStream: a stream that is cut in the middle of a frame has just ended.
func endOfStream(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// typeRange is the beginning of a frame, which holds the event's type in every
// encoding and nothing that a user could have written.
const typeRange = 24

// endsInitialEvents says whether a frame is the bookmark after the objects that
// a watch with sendInitialEvents begins with (KEP-3157).
func endsInitialEvents(frame []byte) bool {
	return bytes.Contains(frame[:min(len(frame), typeRange)], []byte("BOOKMARK")) &&
		bytes.Contains(frame, []byte(metav1.InitialEventsAnnotationKey))
}

// watched is the resource that a request watches.
func watched(request *url.URL) (schema.GroupResource, bool) {
	if !queryBool(request.Query(), "watch") {
		return schema.GroupResource{}, false
	}
	resource, _, ok := pathResource(request.Path)
	return resource, ok
}

// pathResource is the resource in a path, and what follows it there: nothing,
// or a name and a subresource.
func pathResource(path string) (resource schema.GroupResource, rest []string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var group string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return schema.GroupResource{}, nil, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return schema.GroupResource{Group: group, Resource: parts[0]}, parts[1:], true
}

// queryBool reads a parameter as the API server does: present and neither
// "false" nor "0" is true.
func queryBool(query url.Values, name string) bool {
	values, ok := query[name]
	return ok && len(values) > 0 && !strings.EqualFold(values[0], "false") && values[0] != "0"
}

// withoutCBOR removes CBOR from what a client accepts. Its frames have no mark
// of their own; every client that asks for it takes JSON as well.
func withoutCBOR(accept []string) []string {
	var kept []string
	for _, media := range strings.Split(strings.Join(accept, ","), ",") {
		if media = strings.TrimSpace(media); media != "" && !strings.HasPrefix(media, "application/cbor") {
			kept = append(kept, media)
		}
	}
	if len(kept) == 0 {
		kept = []string{"application/json"}
	}
	return []string{strings.Join(kept, ",")}
}
