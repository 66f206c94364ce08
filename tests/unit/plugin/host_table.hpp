// A host service table as a plugin gets it.
#pragma once

#include <gtest/gtest.h>

#include "core/plugin/host_services.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

template <class Table>
const Table& host_table(std::string_view id) {
  const cairn_host* host = host_base();
  const auto* table = static_cast<const Table*>(host->get_interface(host, to_abi_str(id), 1));
  EXPECT_NE(table, nullptr) << id;
  return *table;
}

}  // namespace cairn
