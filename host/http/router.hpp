// Which handler answers which path and method; 404, 405 with Allow, HEAD and OPTIONS are decided here once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "host/http/exchange.hpp"

namespace cairn {

using ExchangePtr = std::shared_ptr<Exchange>;
using Handler = std::function<void(const ExchangePtr&)>;

// Filled before the server starts, read-only afterwards.
class Router {
 public:
  // `render_error` makes the answer to an unknown path or method.
  using RenderError = std::function<HttpResponse(int status, std::string_view code, std::string_view message)>;
  explicit Router(RenderError render_error) : render_error_(std::move(render_error)) {}

  // `path` is exact, or ends in "/*" and then takes everything below. A GET handler answers HEAD too (the connection
  // leaves the body out).
  void add(std::string method, std::string path, Handler handler);
  void dispatch(const ExchangePtr& exchange) const;

 private:
  using Methods = std::map<std::string, Handler, std::less<>>;
  const std::pair<const std::string, Methods>* find(std::string_view path) const;

  RenderError render_error_;
  std::map<std::string, Methods, std::less<>> routes_;
};

}  // namespace cairn
