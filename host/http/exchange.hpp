// One request and its answer, as a handler sees them. Implemented by the connection (host/http/connection.cpp) and by
// recorders in tests.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "host/http/io_thread.hpp"
#include "host/http/message.hpp"

namespace cairn {

// Every method but request(), io() and gone() belongs to the exchange's IO thread. Exactly one answer is given: either
// respond(), or start_stream() .. write() .. end_stream(). Calls after the client is gone do nothing.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Immutable from dispatch on, so any thread may read it.
  virtual const HttpRequest& request() const = 0;
  virtual const std::shared_ptr<IoThread>& io() const = 0;
  // Any thread: the client is gone (closed, reset, dropped), no answer will arrive.
  virtual bool gone() const = 0;

  virtual void respond(HttpResponse response) = 0;
  // A 200 answer of unknown length.
  virtual void start_stream(std::string_view content_type) = 0;
  // Queues bytes for the client. When more than the server's limit waits for a client that does not read, the client is
  // dropped and counts as gone.
  virtual void write(std::string_view bytes) = 0;
  // Ends the answer properly; after a failure the connection closes too.
  virtual void end_stream(bool close_connection) = 0;
  // Called at most once, when the client goes before the answer is complete. Replaces an earlier callback.
  virtual void on_disconnect(std::function<void()> callback) = 0;
  // The route pattern that answers this request, for metrics. `route` must outlive the exchange.
  virtual void set_route(std::string_view route) = 0;
};

}  // namespace cairn
