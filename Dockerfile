# Two images out of one build, each one static program and nothing else; the manager has zones and certificate authorities in it: docker build --target manager|agent .   (make docker-build)
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum main.go ./
COPY api ./api
COPY controllers ./controllers
COPY internal ./internal
COPY agent ./agent
COPY config/agent ./config/agent
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=dev
ENV CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"

FROM build AS build-manager
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -o /manager \
    -ldflags "-s -w -X github.com/reboot-operator/reboot-operator/controllers.Version=$VERSION" .

FROM build AS build-agent
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -o /agent \
    -ldflags "-s -w -X main.version=$VERSION" ./agent

# uid 0, and nothing else of root's: config/agent drops every capability. The host's bus admits no other uid.
FROM scratch AS agent
COPY --from=build-agent /agent /agent
USER 0:0
ENTRYPOINT ["/agent"]

FROM scratch AS manager
COPY --from=build-manager /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
