package main

import "slices"

// decoding is how objects, and reviews of them, are read in one pass.
var decoding = slices.Concat(at("internal/jsonobject/parser.go", []mutant{
	{check: "decoding: to the end of the text", old: `return object, ok && p.at == len(text)`, broken: `return object, ok`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: integers fit", old: `count > maxDigits ||`, broken: ``, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: no leading zeros", old: `|| count > 1 && p.text[digits] == '0' {`, broken: `{`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: no control characters", old: `case c < ' ': return nil, false, false`, broken: `case false:`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: valid UTF-8", old: `ascii || utf8.Valid(raw)`, broken: `ascii || true`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: no halves of surrogate pairs", old: `err == nil && utf8.ValidRune(r)`, broken: `err == nil`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: only the object's own managed fields are left out", old: `unmanaged && key == "metadata"`, broken: `unmanaged`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: of the metadata only those", old: `if unmanaged && depth == 1 && key`, broken: `if unmanaged && key`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: what is left out is JSON", old: `return p.skip(depth)`, broken: `_ = p.skip(depth)
		return true`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: in bounded depth", old: `func (p *parser) object(depth int, unmanaged bool) (map[string]any, bool) { if depth >= maxDepth {`, broken: `func (p *parser) object(depth int, unmanaged bool) (map[string]any, bool) {
	if false {`, test: "TestDecodeAsTheAPIMachinery"},
}), at("internal/jsonobject/cut.go", []mutant{
	{check: "cutting: one object of the name", old: `found != 1 ||`, broken: `found == 0 ||`, test: "TestCut/twice"},
	{check: "cutting: no value twice", old: `c.values[key] != nil ||`, broken: ``, test: "TestCut/a value twice"},
	{check: "cutting: keys as they are written", old: `!ok || !plain ||`, broken: `!ok || !plain && false ||`, test: "TestCut/written otherwise"},
}), at("internal/liveread/client.go", []mutant{
	{check: "live reads: what has no kind is none of ours", old: `return kind != "" && versioned`, broken: `return versioned && (kind != "" || true)`, test: "TestAnswersAreDecodedAsClientGoDoes/no kind"},
	{check: "live reads: what has no version is none of ours", old: `return kind != "" && versioned`, broken: `return kind != "" && (versioned || true)`, test: "TestAnswersAreDecodedAsClientGoDoes/a version of a number"},
}), at("internal/platform/pod.go", []mutant{
	{check: "Pods: others hold them, too", old: `spec = maps.Clone(spec)`, broken: `_ = maps.Clone(spec)`, test: "TestReadPodChangesNothing"},
}), at("webhooks/review.go", []mutant{
	{check: "reviews: of the version that is answered", old: `review.APIVersion != admissionv1.SchemeGroupVersion.String() ||`, broken: ``, test: "TestReviewsAnswersAsControllerRuntime/of v1beta1"},
	{check: "reviews: no object is none", old: `if string(object) == "null" {`, broken: `if false {`, test: "TestReviewsAnswersAsControllerRuntime/a create"},
}))
