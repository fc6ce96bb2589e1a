package main

import "slices"

// decoding is how objects, and reviews of them, are read in one pass.
var decoding = slices.Concat(at("internal/jsonobject/parser.go", []mutant{
	{check: "decoding: to the end of the text", old: `return object, ok && p.ends(text)`, broken: `return object, ok`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: of equal keys the last counts", old: `jsontext.AllowDuplicateNames(true)`, broken: `jsontext.AllowDuplicateNames(false)`, test: "TestWhatIsUnderstood"},
	{check: "decoding: large numbers as they are", old: `return f, err == nil }
// array`, broken: `return f, true }
// array`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: only the object's own managed fields are left out", old: `if is == whole && key == "metadata" {`, broken: `if is == whole {`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: of the metadata only those", old: `if is == metadata && key`, broken: `if is != elsewhere && key`, test: "TestDecodeAsTheAPIMachinery"},
	{check: "decoding: escapes stand for something", old: `if bytes.IndexByte(raw, '\\') < 0 {`, broken: `if bytes.IndexByte(raw, '\\') < len(raw) {`, test: "TestDecodeAsTheAPIMachinery"},
}), at("internal/jsonobject/cut.go", []mutant{
	{check: "cutting: one object of the name", old: `found != 1 ||`, broken: `found == 0 ||`, test: "TestCut/twice"},
	{check: "cutting: no value twice", old: `err != nil || c.values[key] != nil {`, broken: `err != nil {`, test: "TestCut/a value twice"},
}), at("internal/liveread/client.go", []mutant{
	{check: "live reads: what has no kind is none of ours", old: `return kind != "" && versioned`, broken: `return versioned && (kind != "" || true)`, test: "TestAnswersAreDecodedAsClientGoDoes/no kind"},
	{check: "live reads: what has no version is none of ours", old: `return kind != "" && versioned`, broken: `return kind != "" && (versioned || true)`, test: "TestAnswersAreDecodedAsClientGoDoes/a version of a number"},
}), at("internal/platform/pod.go", []mutant{
	{check: "Pods: others hold them, too", old: `spec = maps.Clone(spec)`, broken: `_ = maps.Clone(spec)`, test: "TestReadPodChangesNothing"},
}), at("webhooks/review.go", []mutant{
	{check: "reviews: of the version that is answered", old: `review.APIVersion != admissionv1.SchemeGroupVersion.String() ||`, broken: ``, test: "TestReviewsAnswersAsControllerRuntime/of v1beta1"},
	{check: "reviews: no object is none", old: `if string(object) == "null" {`, broken: `if false {`, test: "TestReviewsAnswersAsControllerRuntime/a create"},
}))
