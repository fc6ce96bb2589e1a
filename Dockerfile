# syntax=docker/dockerfile:1
# The image with Docker: docker buildx build --platform linux/amd64,linux/arm64 .
# Without Docker, with the same content: make image.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION="" COMMIT=""
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -o /freshbind \
    -ldflags "-s -w -X github.com/freshbind/freshbind/cmd/freshbind/app.version=$VERSION -X github.com/freshbind/freshbind/cmd/freshbind/app.commit=$COMMIT" \
    ./cmd/freshbind

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /freshbind /freshbind
USER 65532:65532
ENTRYPOINT ["/freshbind"]
