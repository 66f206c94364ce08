#include "host/http/router.hpp"

namespace cairn {
namespace {

std::string allow_list(const std::map<std::string, Handler, std::less<>>& methods) {
  std::string allow;
  for (const auto& entry : methods) allow += entry.first + ", ";
  if (methods.contains("GET")) allow += "HEAD, ";
  return allow + "OPTIONS";
}

}  // namespace

void Router::add(std::string method, std::string path, Handler handler) {
  routes_[std::move(path)][std::move(method)] = std::move(handler);
}

const std::pair<const std::string, Router::Methods>* Router::find(std::string_view path) const {
  if (const auto exact = routes_.find(path); exact != routes_.end() && !path.ends_with("/*")) return &*exact;
  for (const auto& route : routes_) {
    const std::string_view pattern = route.first;
    if (!pattern.ends_with("/*")) continue;
    const auto prefix = pattern.substr(0, pattern.size() - 1);
    if (path.size() > prefix.size() && path.starts_with(prefix)) return &route;
  }
  return nullptr;
}

void Router::dispatch(const ExchangePtr& exchange) const {
  const HttpRequest& request = exchange->request();
  if (request.method == "OPTIONS" && request.path == "*") {
    exchange->set_route("*");
    exchange->respond({.status = 204, .headers = {{"Allow", "GET, HEAD, POST, OPTIONS"}}});
    return;
  }
  const auto* route = find(request.path);
  if (route == nullptr) {
    exchange->set_route("unknown");
    exchange->respond(render_error_(404, "unknown_url", "There is nothing at this path: " + request.path + "."));
    return;
  }
  exchange->set_route(route->first);
  const Methods& methods = route->second;
  const bool head = request.method == "HEAD";
  const auto handler = methods.find(head ? std::string_view("GET") : std::string_view(request.method));
  if (handler != methods.end()) {
    handler->second(exchange);
    return;
  }
  if (request.method == "OPTIONS") {
    exchange->respond({.status = 204, .headers = {{"Allow", allow_list(methods)}}});
    return;
  }
  auto response =
      render_error_(405, "method_not_allowed",
                    "The method " + request.method + " is not allowed here; allowed: " + allow_list(methods) + ".");
  response.headers.emplace_back("Allow", allow_list(methods));
  exchange->respond(std::move(response));
}

}  // namespace cairn
