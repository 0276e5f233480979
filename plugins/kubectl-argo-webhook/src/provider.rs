//! The providers whose webhooks argocd-server reads (argo-cd v3.5.1 util/webhook/scm.go).

use clap::ValueEnum;

/// Whose webhook is imitated. It need not be where the repository is: the server reads only the address in the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Provider {
    /// GitHub
    Github,
    /// GitLab
    Gitlab,
    /// Bitbucket Cloud
    Bitbucket,
    /// Bitbucket Server and Data Center
    BitbucketServer,
    /// Gogs, Gitea, Forgejo
    Gogs,
    /// Azure DevOps
    Azuredevops,
}

impl Provider {
    /// As it is typed and recorded.
    pub fn name(self) -> &'static str {
        match self {
            Provider::Github => "github",
            Provider::Gitlab => "gitlab",
            Provider::Bitbucket => "bitbucket",
            Provider::BitbucketServer => "bitbucket-server",
            Provider::Gogs => "gogs",
            Provider::Azuredevops => "azuredevops",
        }
    }

    /// As its makers spell it.
    pub fn title(self) -> &'static str {
        match self {
            Provider::Github => "GitHub",
            Provider::Gitlab => "GitLab",
            Provider::Bitbucket => "Bitbucket Cloud",
            Provider::BitbucketServer => "Bitbucket Server",
            Provider::Gogs => "Gogs",
            Provider::Azuredevops => "Azure DevOps",
        }
    }

    /// The keys of `argocd-secret` that hold what its events are checked with: one, or user name and password.
    pub fn secret_keys(self) -> &'static [&'static str] {
        match self {
            Provider::Github => &["webhook.github.secret"],
            Provider::Gitlab => &["webhook.gitlab.secret"],
            Provider::Bitbucket => &["webhook.bitbucket.uuid"],
            Provider::BitbucketServer => &["webhook.bitbucketserver.secret"],
            Provider::Gogs => &["webhook.gogs.secret"],
            Provider::Azuredevops => &["webhook.azuredevops.username", "webhook.azuredevops.password"],
        }
    }

    /// Whether its events carry an HMAC of the body; the others carry the key itself.
    pub fn has_hmac(self) -> bool {
        matches!(self, Provider::Github | Provider::BitbucketServer | Provider::Gogs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_that_are_typed() {
        for provider in Provider::value_variants() {
            let typed = provider.to_possible_value().unwrap();
            assert_eq!(typed.get_name(), provider.name());
        }
    }
}
