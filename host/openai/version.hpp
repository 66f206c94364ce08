// The version that the API and the command line report; the build passes it in.
#pragma once

namespace cairn {

inline constexpr const char kVersion[] = CAIRN_VERSION;
inline constexpr const char kSystemFingerprint[] = "cairn-" CAIRN_VERSION;

}  // namespace cairn
