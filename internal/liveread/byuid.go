package liveread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/fair"
)

const (
	// listPage is how many objects a list asks for at once.
	listPage = 500
	// listsAtOnce bounds the memory and the load of lists: each keeps one object
	// of a page, of at most some MiB. A namespace has one of them at most: whoever makes up
	// UIDs there has it listed anew for each.
	listsAtOnce = 4
	// metadataOnly asks for no more of each object.
	metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// uidGetter finds objects by their UIDs, by which no API server selects.
type uidGetter struct {
	client rest.Interface
	turns  *fair.Turns
}

// NewUIDGetter returns a Getter whose Refs have a UID in place of a name. It
// lists the namespace, page by page and consistently, and answers with name and
// UID of the object, or with a 404. It is for writes that are rare.
func NewUIDGetter(cfg *rest.Config) (Getter, error) {
	cfg = unlimited(cfg)
	cfg.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client for lists: %w", err)
	}
	return &uidGetter{client: client, turns: fair.NewTurns(listsAtOnce, 1)}, nil
}

// Get leaves the resourceVersion unset, which makes the list linearizable; its
// further pages are of the same version.
func (g *uidGetter) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	done, err := g.turns.Take(ctx, ref.Namespace)
	if err != nil {
		return nil, fmt.Errorf("waiting for other lists: %w", err)
	}
	defer done()
	for next := ""; ; {
		found, more, err := g.page(ctx, ref, next)
		if err != nil || found != nil {
			return found, err
		}
		if more == "" {
			return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
		}
		next = more
	}
}

func (g *uidGetter) page(ctx context.Context, ref Ref, from string) (found *unstructured.Unstructured, more string, err error) {
	request := g.client.Get().AbsPath("/apis", ref.GVR.Group, ref.GVR.Version).
		Namespace(ref.Namespace).Resource(ref.GVR.Resource).
		Param("limit", strconv.Itoa(listPage)).SetHeader("Accept", metadataOnly)
	if from != "" {
		request = request.Param("continue", from)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("listing %s: %w", ref.GVR.Resource, unnamed(err))
	}
	defer func() { _ = body.Close() }()
	found, more, err = scanList(body, ref.Name)
	if err != nil {
		return nil, "", fmt.Errorf("reading a list of %s: %w", ref.GVR.Resource, err)
	}
	return found, more, nil
}

// unnamed: a 404 of the whole list says nothing of an object, and must not be
// taken for absence.
func unnamed(err error) error {
	if apierrors.IsNotFound(err) {
		return errors.New(http.StatusText(http.StatusNotFound) + ": the list is not served")
	}
	return err
}

type listMeta struct {
	Continue string `json:"continue"`
}

type listItem struct {
	Metadata struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"metadata"`
}

// scanList looks for the object of a UID and keeps no other one.
func scanList(body io.Reader, uid string) (found *unstructured.Unstructured, more string, err error) {
	d := json.NewDecoder(body)
	if err := open(d, '{'); err != nil {
		return nil, "", err
	}
	listed := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, "", err
		}
		switch key {
		case "metadata":
			var meta listMeta
			err = d.Decode(&meta)
			more = meta.Continue
		case "items":
			listed = true
			found, err = scanItems(d, uid)
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil || found != nil {
			return found, "", err
		}
	}
	if _, err := d.Token(); err != nil || !listed {
		return nil, "", errors.Join(err, errors.New("it is cut off or is no list"))
	}
	return nil, more, nil
}

// scanItems takes null for no items: of metadata alone, that is how the API server lists
// nothing.
func scanItems(d *json.Decoder, uid string) (*unstructured.Unstructured, error) {
	first, err := d.Token()
	if first == nil {
		return nil, err
	}
	if err := expect(first, '['); err != nil {
		return nil, err
	}
	for d.More() {
		var item listItem
		if err := d.Decode(&item); err != nil {
			return nil, err
		}
		if item.Metadata.UID != uid {
			continue
		}
		found := &unstructured.Unstructured{}
		found.SetName(item.Metadata.Name)
		found.SetUID(types.UID(uid))
		return found, nil
	}
	_, err = d.Token()
	return nil, err
}

// open reads the delimiter that a list or an object begins with.
func open(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return err
	}
	return expect(got, want)
}

func expect(got json.Token, want json.Delim) error {
	if got != want {
		return fmt.Errorf("it has %v where %v was expected", got, want)
	}
	return nil
}
