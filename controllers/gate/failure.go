package gate

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// why reports in one sentence why a server could not be asked. The credentials are in no part of it.
func why(err error) string {
	var api *promv1.Error
	var slow net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return fmt.Sprintf("no answer within %s", Timeout)
	case strings.Contains(err.Error(), `unexpected value type "string"`): // the library reads no strings
		return "the query gives a string, which is neither yes nor no: ask for a vector"
	case errors.As(err, &api):
		return refusal(api)
	}
	return broken(err)
}

const unreadable = "the answer cannot be read: is this the API of a Prometheus server, and by the right one of http and https?"

// notOfTheAPI are what the library reports of a 400 or 422 that is not in the API's format. The API itself gives both a reason.
var notOfTheAPI = []string{"client error: 400", "client error: 422"}

// refusal is of a server that has answered.
func refusal(err *promv1.Error) string {
	switch {
	case err.Type == promv1.ErrBadData:
		return "the query is refused: " + err.Msg
	case err.Type == promv1.ErrBadResponse, slices.Contains(notOfTheAPI, err.Msg):
		return unreadable
	default:
		return "the server refuses: " + err.Msg
	}
}

// broken leaves out what differs from one attempt to the next, such as the local port of a connection.
func broken(err error) string {
	var operation *net.OpError
	var certificate x509.CertificateInvalidError
	var address *url.Error
	switch {
	case errors.Is(err, errRedirected):
		return errRedirected.Error()
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return "the server's certificate has expired or is not valid yet"
	case errors.As(err, &operation) && operation.Addr != nil && operation.Op == "dial":
		return fmt.Sprintf("%s cannot be reached: %v", operation.Addr, operation.Err)
	case errors.As(err, &operation):
		return fmt.Sprintf("the connection broke: %v", operation.Err)
	case errors.As(err, &address):
		return address.Err.Error()
	}
	return err.Error()
}
