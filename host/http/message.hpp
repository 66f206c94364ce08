// Requests and responses as the handlers see them: plain data, no Beast types. Used by everything in host/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn {

struct HttpRequest {
  std::string method;        // upper case, as sent
  std::string path;          // percent-decoded, without the query
  std::string query;         // raw, without the question mark
  std::string content_type;  // as sent, may be empty
  std::string body;
  std::string request_id;  // from x-request-id when that was sane, else made here; goes back in every response
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// The standard reason phrase, "Unknown" for a code we never send.
const char* reason_phrase(int status);

// "%41%2F" to "A/". A malformed escape stays as it is.
std::string percent_decode(std::string_view text);

// Whether a client's x-request-id may be repeated in headers and logs: 1 to 128 letters, digits and "-_.:".
bool is_sane_request_id(std::string_view id);

// 32 hexadecimal digits, unique in this process and not guessable from one another's order. Any thread.
std::string make_random_id();

}  // namespace cairn
