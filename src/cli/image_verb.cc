#include "cli/image_verb.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/dates.h"
#include "base/json.h"
#include "cli/image_uses.h"
#include "cli/progress.h"
#include "cli/state_dir.h"
#include "cli/table.h"
#include "engine/image_pull.h"
#include "engine/image_pulls.h"
#include "layers/image_gc.h"
#include "layers/image_index.h"
#include "layers/image_name.h"
#include "sys/file.h"

namespace cay::cli {
namespace {

using layers::ImageIndex;
using layers::StoredImage;

constexpr size_t kShownDigits = 19;  // "sha256:" and 12 of them

struct ImageOptions {
  std::string state;
  std::vector<std::string> names;  // of pull and rm
  std::string name;
  std::string path;    // of import
  std::string target;  // of alias
  std::string authFile;
  bool noAdvice = false;  // of pull
  bool json = false;
};

layers::Owners owners() {
  return ::geteuid() == 0 ? layers::Owners::kKept : layers::Owners::kOwn;
}

struct Place {
  hub::Paths paths;
  std::string folder;
};

Result<Place> openImages(const ImageOptions& options) {
  CAY_ASSIGN(hub::Paths paths, makeState(options.state));
  std::string folder = paths.images();
  const auto made = sys::makeDirectoryAt(AT_FDCWD, folder.c_str(), 0700);
  if (!made && made.error().sys != EEXIST) return std::unexpected(made.error());
  return Place{std::move(paths), std::move(folder)};
}

Result<std::string> fullName(const std::string& name) {
  CAY_ASSIGN(const layers::ImageName parsed, layers::parseImageName(name));
  return parsed.text();
}

Error explained(Error error, const std::string& name, const ImageOptions& options) {
  switch (error.code) {
    case Code::kUnreachable:
      error.message =
          "the registry of " + cay::quoted(name) + " cannot be reached (" + error.message + ")";
      if (!options.noAdvice) error.message += ": " + engine::imageHelp(name);
      break;
    case Code::kDenied:
      error.message = "image " + cay::quoted(name) + ": the registry wants other credentials (" +
                      error.message + "): log in with  skopeo login , or give --auth-file";
      break;
    case Code::kNotFound:
      error.message =
          "image " + cay::quoted(name) + ": the registry does not have it (" + error.message + ")";
      break;
    default:
      break;
  }
  return error;
}

void tellStored(const std::string& full, const StoredImage& image) {
  std::printf("%s %s, %zu layers, %s\n", full.c_str(), image.digest.c_str(), image.layers.size(),
              sizeText(image.bytes).c_str());
}

// Calls `bring` with options whose progress is shown.
template <typename Bring>
Result<> bringImage(const ImageOptions& options, const std::string& name, Bring bring) {
  CAY_ASSIGN(const std::string full, fullName(name));
  CAY_ASSIGN(const Place place, openImages(options));
  Result<StoredImage> stored;
  {
    ProgressLine line(stderr, ::isatty(STDERR_FILENO) != 0);
    stored = bring(engine::PullOptions{
        .folder = place.folder,
        .owners = owners(),
        .authFile = options.authFile,
        .progress = [&](const engine::PullProgress& at) { line.show(at, monotonicMs()); }});
  }
  if (!stored) return std::unexpected(std::move(stored).error());
  tellStored(full, *stored);
  return {};
}

Result<> pull(const ImageOptions& options) {
  if (!options.authFile.empty()) {
    // skopeo would go on without it.
    CAY_TRY(sys::openAt(AT_FDCWD, options.authFile.c_str(), O_RDONLY));
  }
  for (const std::string& name : options.names) {
    auto done = bringImage(options, name, [&](const engine::PullOptions& how) {
      return engine::pullImage(how, name);
    });
    if (!done) return std::unexpected(explained(std::move(done).error(), name, options));
  }
  return {};
}

Result<> importRoot(const ImageOptions& options) {
  const std::string& name = options.name;
  return bringImage(options, name, [&](const engine::PullOptions& how) {
    return std::filesystem::is_directory(options.path)
               ? engine::importFolder(how, name, options.path)
               : engine::importTar(how, name, options.path);
  });
}

json::Object imageJson(const std::string& name, const StoredImage& image) {
  json::Array layers;
  for (const std::string& layer : image.layers) layers.emplace_back(layer);
  return {{"name", name},
          {"digest", image.digest},
          {"layers", std::move(layers)},
          {"bytes", image.bytes},
          {"added", isoDate(image.addedAtMs * 1000, Fraction::kMillis)}};
}

void printJson(const ImageIndex::Listing& listing) {
  json::Array images;
  for (const auto& [name, image] : listing.images) images.push_back(imageJson(name, image));
  json::Array aliases;
  for (const auto& [name, target] : listing.aliases) {
    aliases.push_back(json::Object{{"name", name}, {"target", target}});
  }
  (void)std::puts(json::serialize(json::Object{{"images", std::move(images)},
                                               {"aliases", std::move(aliases)},
                                               {"builtin", json::Array{layers::kHostImage}}})
                      .c_str());
}

Result<> ls(const ImageOptions& options) {
  CAY_ASSIGN(const Place place, openImages(options));
  ImageIndex index(place.folder);
  CAY_ASSIGN(const ImageIndex::Listing listing, index.list());
  if (options.json) {
    printJson(listing);
    return {};
  }
  Table table({"NAME", "WHAT", "SIZE", "ADDED"});
  table.add({layers::kHostImage, "built in: this machine's own programs", "", ""});
  for (const auto& [name, image] : listing.images) {
    table.add({name, image.digest.substr(0, kShownDigits), sizeText(image.bytes),
               isoDate(image.addedAtMs * 1000, Fraction::kMillis)});
  }
  for (const auto& [name, target] : listing.aliases)
    table.add({name, "alias of " + target, "", ""});
  (void)std::fputs(table.text().c_str(), stdout);
  return {};
}

Result<> rm(const ImageOptions& options) {
  CAY_ASSIGN(const Place place, openImages(options));
  ImageIndex index(place.folder);
  for (const std::string& name : options.names) {
    if (name == layers::kHostImage) {
      return fail(Code::kInvalid, "'host' is built in and cannot be removed");
    }
    CAY_ASSIGN(const std::string full, fullName(name));
    CAY_TRY(index.remove(name));
    std::printf("removed %s\n", full.c_str());
  }
  return {};
}

Result<> prune(const ImageOptions& options) {
  CAY_ASSIGN(const Place place, openImages(options));
  ImageIndex index(place.folder);
  layers::LayerStore store(place.folder, owners());
  CAY_ASSIGN(const auto inUse, imagesOfJobs(place.paths));
  CAY_ASSIGN(const layers::Collected collected,
             layers::collectImages(place.folder, index, store, inUse));
  std::printf("removed %zu layers and %zu blobs\n", collected.layers, collected.blobs);
  return {};
}

Result<> alias(const ImageOptions& options) {
  const std::string& name = options.name;
  CAY_ASSIGN(const std::string full, fullName(name));
  CAY_ASSIGN(const Place place, openImages(options));
  ImageIndex index(place.folder);
  CAY_TRY(index.setAlias(name, options.target));
  if (const auto found = index.find(name); !found && found.error().code == Code::kNotFound) {
    (void)std::fprintf(stderr, "cay image: note: %s\n", found.error().message.c_str());
  }
  std::printf("%s is now an alias of %s, and jobs that ask for it are told so\n", full.c_str(),
              options.target.c_str());
  return {};
}

using Work = Result<> (*)(const ImageOptions&);
struct Verb {
  CLI::App& app;
  ImageOptions& options;
};

Verb addOne(CLI::App& image, Action& action, const char* name, const char* help, Work work) {
  const auto options = std::make_shared<ImageOptions>();
  CLI::App* const verb = image.add_subcommand(name, help);
  addState(*verb, options->state);
  verb->callback([&action, options, work] { action = [options, work] { return work(*options); }; });
  return {*verb, *options};
}

void addName(const Verb& verb, const char* help) {
  verb.app.add_option("NAME", verb.options.name, help)->required();
}

void addNames(const Verb& verb, const char* help) {
  verb.app.add_option("NAME", verb.options.names, help)->required()->expected(1, -1);
}

}  // namespace

void addImageVerb(CLI::App& cay, Action& action) {
  CLI::App* const image = cay.add_subcommand("image", "bring, name and remove the roots of jobs");
  image->require_subcommand(0, 1);

  const Verb pulled = addOne(*image, action, "pull", "fetch images from their registries", pull);
  addNames(pulled, "as docker has them: python:3.12, registry/repository@sha256:…");
  pulled.app
      .add_option("--auth-file", pulled.options.authFile,
                  "credentials, as of docker or skopeo login (default: where skopeo looks)")
      ->type_name("FILE");
  pulled.app.add_flag("--no-advice", pulled.options.noAdvice,
                      "say why it failed, and not what else could be done");

  const Verb imported = addOne(*image, action, "import", "make an image of a root", importRoot);
  addName(imported, "what it is to be called");
  imported.app.add_option("PATH", imported.options.path, "a folder, or a tar archive of one")
      ->required();

  const Verb listed = addOne(*image, action, "ls", "list images and aliases", ls);
  listed.app.add_flag("--json", listed.options.json, "print JSON");

  const Verb removed =
      addOne(*image, action, "rm", "remove names; jobs that run keep their image", rm);
  addNames(removed, "of images or aliases");

  (void)addOne(*image, action, "prune", "remove layers that no image and no job needs", prune);

  const Verb aliased = addOne(*image, action, "alias", "let a name stand for another image", alias);
  addName(aliased, "what jobs ask for");
  aliased.app.add_option("TARGET", aliased.options.target, "host, or the name of an image")
      ->required();
}

}  // namespace cay::cli
