// A guard in front of yaml-cpp's loader. Used by the deployment file's parser.
#pragma once

#include <string>

namespace cairn {

// At most this many documents are read of one file.
inline constexpr int kMaxDocuments = 256;

// Throws BadFile when the text holds more documents. yaml-cpp 0.7 reads a text that begins with a stray ',' as empty
// documents without end and would collect them until memory is gone; counting them first costs one more pass.
// Throws YAML::Exception for a text that is no YAML.
void check_document_count(const std::string& text, const std::string& name);

}  // namespace cairn
