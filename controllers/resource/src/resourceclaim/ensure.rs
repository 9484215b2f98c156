//! The claim of one entry: it is found, or it is created from the template.

use kcm_framework::Session;
use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::ResourceClaim;
use kcm_framework::client::Payload;
use kcm_framework::informers::Lookup;

use super::error::EntryError;
use super::new_claim::{ENTRY_ANNOTATION, Names, name_prefix, new_claim};
use super::owner::Owner;
use super::reconcile::Reconciler;
use super::template::ClaimTemplate;
use crate::shared::{Entry, EntryClaim, beside};

impl Reconciler {
    /// Returns the name of the claim if the status does not have it yet.
    pub(super) async fn ensure_claim(
        &self,
        owner: Owner<'_>,
        entry: Entry<'_>,
        session: &Session,
    ) -> Result<Option<String>, EntryError> {
        match EntryClaim::of(entry, owner.statuses()) {
            EntryClaim::OfUser(_) | EntryClaim::NotNeeded => return Ok(None),
            EntryClaim::Unsupported => {
                let (kind, of, entry) = (owner.kind(), owner.metadata().key.clone(), entry.name.to_string());
                return Err(EntryError::Unsupported { kind, owner: of, entry });
            }
            EntryClaim::Generated(name) => {
                if self.exists(owner, name, session).await? {
                    return Ok(None);
                }
            }
            EntryClaim::NotCreated => {}
        }
        let Some(template) = entry.template else { return Ok(None) };
        if let Some(group) = owner.group_of(entry) {
            if !self.features.group_claims {
                return Err(EntryError::OfGroup { entry: entry.name.to_string() });
            }
            // The group creates it, and its status enqueues the pods.
            return Ok(self.find_created(Owner::Group(group), entry));
        }
        if let Some(claim) = self.find_created(owner, entry) {
            session.explain(|| format!("uses the claim {claim}, which was created before"));
            return Ok(Some(claim));
        }
        let key = beside(&owner.metadata().key, template);
        match self.templates.lookup(&key) {
            Lookup::Found(template) => self.create(owner, entry, &template, session).await.map(Some),
            Lookup::Absent => Err(EntryError::NoTemplate { template: template.to_string() }),
            Lookup::Undecodable(template) => {
                session.requeue_when_decodable(&self.templates.cache(), &template);
                session.explain(|| format!("creates no claim from the template {key}, which cannot be decoded"));
                Ok(None)
            }
        }
    }

    /// Returns `true` if the claim that the status names exists and was created for the owner.
    async fn exists(&self, owner: Owner<'_>, name: &str, session: &Session) -> Result<bool, EntryError> {
        let key = beside(&owner.metadata().key, name);
        match self.claims.lookup(&key) {
            Lookup::Found(claim) => Ok(owner.has_created(&claim.metadata, self.features)),
            // The cache may be behind the status.
            Lookup::Absent => {
                let live = session.live_meta::<ResourceClaim>(&key).await.map_err(EntryError::Read)?;
                Ok(live.is_some_and(|live| owner.has_created(&live.metadata, self.features)))
            }
            Lookup::Undecodable(claim) => {
                session.requeue_when_decodable(&self.claims.cache(), &claim);
                Ok(true)
            }
        }
    }

    /// Returns the name of the claim that was created for the entry, such as by a predecessor that was killed before it
    /// wrote the status.
    fn find_created(&self, owner: Owner<'_>, entry: Entry<'_>) -> Option<String> {
        let owner = owner.metadata();
        let of_owner = self.claims_by_controller.get(&owner.uid);
        let of_entry = of_owner.into_iter().find(|claim| {
            claim.metadata.key.namespace() == owner.key.namespace()
                && claim.metadata.annotations.get(ENTRY_ANNOTATION) == Some(entry.name)
        });
        of_entry.map(|claim| claim.metadata.key.name().to_owned())
    }

    async fn create(
        &self,
        owner: Owner<'_>,
        entry: Entry<'_>,
        template: &ClaimTemplate,
        session: &Session,
    ) -> Result<String, EntryError> {
        if template.has_admin_access && !self.features.admin_access {
            return Err(EntryError::AdminAccess);
        }
        if template.has_alternatives && !self.features.prioritized_list {
            return Err(EntryError::PrioritizedList);
        }
        let prefix = name_prefix(owner.metadata().key.name(), entry.name);
        let name = session.generate_name(&prefix);
        let reference = owner.reference();
        let names = Names { name: &name, prefix: &prefix, entry: entry.name };
        let claim = new_claim(names, template, &reference);
        session.explain(|| format!("creates the claim {name} from the template {}", template.metadata.key));
        let key = beside(&owner.metadata().key, &name);
        let created =
            session.of(const { &ResourceClaim::RESOURCE }).create(&key, Payload::raw(claim.get().to_owned())).await;
        self.metrics.created(created.is_ok(), template.has_admin_access, &reference);
        created.map_err(EntryError::Create)?;
        tracing::info!(claim = %key, "Created a claim from a template");
        Ok(name)
    }
}
